/** Several API processes behind one port, started and watched by one. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Config } from '../config.js';
import type { Endpoints } from '../embedded/data-dir.js';
import { supervise } from '../embedded/supervisor.js';
import { programPath } from '../programs.js';
import { type ChildWatch, watchChild } from './api-channel.js';
import type { Engine } from './engine.js';
import type { CollectedFigures, Metrics } from './metrics.js';

/** What a process gets when it starts: not by its environment or arguments, where others can read it. */
export interface ApiProcessSettings {
  /** From 1 on. */
  readonly number: number;
  readonly config: Config;
  readonly endpoints: Endpoints;
}

/** What a process says when it serves. */
export const readyMessage = 'ready';

const entry = programPath('api-process.js');

export interface ApiProcessesOptions {
  readonly config: Config;
  /** Why the consumers of this process do not move, or null. */
  readonly stalled: () => string | null;
  readonly metrics: Metrics;
}

/** Resolves when all of them serve; one that dies or hangs is started again. */
export async function startApiProcesses(
  { endpoints, logger, closers }: Engine,
  { config, stalled, metrics }: ApiProcessesOptions,
): Promise<void> {
  const watches = new Map<number, ChildWatch>();
  let hung = 0;
  metrics.add({
    name: 'api_processes_answering',
    help: 'API processes that serve and answer the one that started them',
    type: 'gauge',
    read: () => [...watches.values()].filter((watch) => watch.answering()).length,
  });
  metrics.add({
    name: 'api_processes_hung_total',
    help: 'API processes that hung and were ended, to be started again',
    type: 'counter',
    read: () => hung,
  });
  const collectAll = async (): Promise<CollectedFigures[]> => {
    const children = [...watches.values()].map((watch) => watch.collect());
    const [own, others] = await Promise.all([metrics.collect(), Promise.all(children)]);
    return [own, ...others.flat()];
  };
  const onHung = (): void => {
    hung += 1;
  };
  const processes = Array.from({ length: config.apiProcesses }, (_, i) => {
    const name = `API process ${i + 1}`;
    const settings: ApiProcessSettings = { number: i + 1, config, endpoints };
    return supervise({
      name,
      logger,
      spawn: () => {
        const child = fork(entry, { detached: true, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
        if (child.pid !== undefined) child.send(settings);
        return child;
      },
      ready: async (child, signal) => {
        await untilReady(child, signal);
        watches.set(i, watchChild(child, { name, logger, stalled, collectAll, onHung }));
      },
    });
  });
  closers.add('API processes', async (limitMs) => {
    await Promise.all(processes.map((process) => process.stop(limitMs)));
  });
  await Promise.all(processes.map(({ ready }) => ready));
}

/** A child gives up by itself where Redis is unavailable; one that says nothing at all for so long hangs. */
const readyLimitMs = 120_000;

/** @throws Error where the child says something else, or nothing in time */
export async function untilReady(
  child: ChildProcess,
  signal: AbortSignal,
  limitMs = readyLimitMs,
): Promise<void> {
  const late = AbortSignal.timeout(limitMs);
  const heard = once(child, 'message', { signal: AbortSignal.any([signal, late]) });
  const [message] = await heard.catch((error: unknown) => {
    throw late.aborted ? new Error(`an API process was not ready within ${limitMs / 1000} s`) : error;
  });
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
