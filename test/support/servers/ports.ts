import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net';
import type { Scoped } from '../scope.js';

/** Listens on a loopback port until the test ends. @param port 0: any free port @returns the port */
export async function listen(t: Scoped, server: NetServer | Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** Occupies a port until the test ends. @returns the port */
export const takePort = (t: Scoped, port = 0): Promise<number> => listen(t, createServer(), port);
