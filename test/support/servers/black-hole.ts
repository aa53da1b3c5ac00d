import { connect, createServer, type Socket } from 'node:net';
import type { Scoped } from '../scope.js';
import { listen } from './ports.js';

/** Starts a proxy that can change its target, or discard all data in both directions without closing the connections. */
export async function startBlackHole(t: Scoped, firstTarget: number) {
  let targetPort = firstTarget;
  const sockets = new Set<Socket>();
  let swallowsNew = false;
  const discard = (socket: Socket): void => {
    socket.unpipe();
    socket.removeAllListeners('data');
    socket.resume();
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    sockets.add(client);
    client.on('error', () => client.destroy());
    if (swallowsNew) return void discard(client);
    const target = connect(targetPort, '127.0.0.1');
    sockets.add(target);
    target.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.on('close', () => target.destroy());
    client.pipe(target).pipe(client);
  });
  const port = await listen(t, server);
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  return {
    port,
    /** Connections that open later reach another port. Open ones stay with the previous one. */
    setTarget: (target: number): void => {
      targetPort = target;
    },
    /** Discards the data of open connections. @param includesNew also of connections that open later */
    swallow: (includesNew: boolean): void => {
      swallowsNew = includesNew;
      for (const socket of sockets) discard(socket);
    },
    /** Connections that open later work again. */
    release: (): void => {
      swallowsNew = false;
    },
  };
}
