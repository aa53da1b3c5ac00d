import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the range for outgoing connections, so that a port stays free during a restart. */
const firstPort = 20_000;
const lastPort = 29_999;
const maxAttempts = 50;
const maxStartAttempts = 3;

export async function findFreePort(): Promise<number> {
  for (let i = 0; i < maxAttempts; i++) {
    const port = randomInt(firstPort, lastPort + 1);
    if (await isPortFree(port)) return port;
  }
  throw new Error(
    `no free port on 127.0.0.1 between ${firstPort} and ${lastPort} after ${maxAttempts} attempts`,
  );
}

/** Retries if another program took the port. */
export async function startOnFreePort<Server>(start: (port: number) => Promise<Server>): Promise<Server> {
  for (let attempts = 1; ; attempts++) {
    const port = await findFreePort();
    try {
      return await start(port);
    } catch (error) {
      if (attempts === maxStartAttempts || (await isPortFree(port))) throw error;
    }
  }
}

export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(false);
      else reject(error);
    });
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}
