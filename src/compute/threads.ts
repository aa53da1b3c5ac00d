import { EventEmitter } from 'node:events';
import { Piscina } from 'piscina';
import { unavailable } from '../errors.js';
import { programPath } from '../programs.js';
import type { Logger } from '../telemetry.js';

/**
 * Atomics are off: in Piscina's default mode an idle worker sleeps in Atomics.wait, and its Redis connection is not served
 * meanwhile, so replies, time-outs and reconnects would wait for the next task.
 */
export const startPool = (
  name: 'track' | 'forecast' | 'fit' | 'rebuild' | 'retract',
  options: NonNullable<ConstructorParameters<typeof Piscina>[0]>,
): Piscina =>
  new Piscina({
    filename: programPath('entry.cjs'),
    name,
    atomics: 'disabled',
    recordTiming: false,
    ...options,
  });

/** Without it a thread that cannot be started (no descriptors, no memory) ends the process. Its tasks end by their limit. */
export const logThreadFailures = (pool: Piscina, logger: Logger): Piscina =>
  pool.on('error', (error) => logger.error({ err: error }, 'a worker thread cannot be started'));

/** A task that takes longer never ends. */
const maxTaskMs = 15_000;

/** A task took too long, or shared its thread with one that did: the thread was ended. */
export class TaskAborted extends Error {}

/** Aborted tasks of a pool: a task that fails while another is aborted lost its thread. */
const aborted = new WeakMap<Piscina, number>();

/** @throws TaskAborted, and what the task throws */
export async function runLimited<Reply>(
  pool: Piscina,
  task: unknown,
  transferList: ArrayBuffer[] = [],
): Promise<Reply> {
  // Not an AbortSignal: V8 keeps each of those until it collects all garbage, which it then does often.
  const signal = new EventEmitter();
  const before = aborted.get(pool);
  const timer = setTimeout(() => {
    aborted.set(pool, (aborted.get(pool) ?? 0) + 1);
    signal.emit('abort');
  }, maxTaskMs);
  try {
    return await pool.run(task, { signal, transferList });
  } catch (error) {
    if (aborted.get(pool) === before) throw error;
    throw new TaskAborted('a task took too long: its thread was ended', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

type Served<Reply> = Exclude<Reply, { readonly unavailable: string }>;

/** A thread's reply. @throws ApiError UNAVAILABLE, as which the thread's own cannot cross the boundary */
export function served<Reply extends object>(reply: Reply): Served<Reply> {
  if ('unavailable' in reply) throw unavailable(String(reply.unavailable));
  return reply as Served<Reply>;
}

/**
 * As `runLimited`, for a caller that may try again.
 * @param tooLong message where the task was aborted
 * @throws ApiError UNAVAILABLE, and what the task throws
 */
export async function runServed<Reply extends object>(
  pool: Piscina,
  task: unknown,
  tooLong: string,
): Promise<Served<Reply>> {
  const reply = await runLimited<Reply>(pool, task).catch((error: unknown) => {
    if (!(error instanceof TaskAborted)) throw error;
    throw unavailable(tooLong, error);
  });
  return served(reply);
}
