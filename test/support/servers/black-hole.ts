import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** A way to a server that can take what is sent and give nothing back, without closing anything. */
export interface BlackHole {
  readonly port: number;
  /** Swallows what goes over the connections that are there; with `all`, over those that come as well. */
  swallow(all: boolean): void;
  /** New connections pass again. */
  release(): void;
}

export async function startBlackHole(t: TestContext, targetPort: number): Promise<BlackHole> {
  const sockets = new Set<Socket>();
  let swallowsAll = false;
  const swallow = (socket: Socket): void => {
    socket.unpipe();
    socket.removeAllListeners('data');
    socket.resume();
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    sockets.add(client);
    client.on('error', () => client.destroy());
    if (swallowsAll) return swallow(client);
    const target = connect(targetPort, '127.0.0.1');
    sockets.add(target);
    target.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.on('close', () => target.destroy());
    client.pipe(target);
    target.pipe(client);
    return undefined;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    swallow: (all) => {
      swallowsAll = all;
      for (const socket of sockets) swallow(socket);
    },
    release: () => {
      swallowsAll = false;
    },
  };
}
