/** Several API processes behind one port, started and watched by one. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Config } from './config.js';
import type { Endpoints } from './embedded/data-dir.js';
import { supervise } from './embedded/supervisor.js';
import type { Closers } from './lifecycle.js';
import type { Logger } from './telemetry.js';

/** What a process is told when it starts: not by its environment or arguments, where others can read it. */
export interface ApiProcessSettings {
  readonly config: Config;
  readonly endpoints: Endpoints;
}

/** What a process says when it serves. */
export const readyMessage = 'ready';

const entry = fileURLToPath(new URL('./api-process.js', import.meta.url));

/** Resolves when all of them serve; one that dies is started again. */
export async function startApiProcesses(
  config: Config,
  endpoints: Endpoints,
  logger: Logger,
  closers: Closers,
): Promise<void> {
  const settings: ApiProcessSettings = { config, endpoints };
  const processes = Array.from({ length: config.apiProcesses }, (_, i) =>
    supervise({
      name: `API process ${i + 1}`,
      logger,
      spawn: () => {
        const child = fork(entry, { detached: true, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
        child.send(settings);
        return child;
      },
      ready: untilReady,
    }),
  );
  closers.add('API processes', async (limitMs) => {
    await Promise.all(processes.map((process) => process.stop(limitMs)));
  });
  await Promise.all(processes.map(({ ready }) => ready));
}

async function untilReady(child: ChildProcess, signal: AbortSignal): Promise<void> {
  const [message] = await once(child, 'message', { signal });
  if (message !== readyMessage)
    throw new Error(`unexpected message from an API process: ${JSON.stringify(message)}`);
}

/**
 * The port for several processes: 0 becomes a free one. They can only share it by a socket option that would share
 * it with strangers too, so it is tried alone first. @throws when somebody listens on it
 */
export async function findPort(host: string, port: number): Promise<number> {
  const probe = createServer();
  probe.listen({ host, port, exclusive: true });
  await once(probe, 'listening');
  const { port: found } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return found;
}
