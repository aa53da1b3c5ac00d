import { EventEmitter } from 'node:events';
import type { Piscina } from 'piscina';
import { unavailable } from '../errors.js';

/** Longest that a task may take: beyond it, something in it does not end. */
const taskTimeoutMs = 15_000;

/** A task took too long, or shared its thread with one that did: the thread was ended. */
export class TaskGivenUp extends Error {}

/** How many tasks of a pool were given up: who fails while another is given up had its thread taken away. */
const givenUp = new WeakMap<Piscina, number>();
const givenUpOf = (pool: Piscina): number => givenUp.get(pool) ?? 0;

/** @throws TaskGivenUp, and what the task throws */
export async function runLimited<Reply>(
  pool: Piscina,
  task: unknown,
  transferList: ArrayBuffer[] = [],
): Promise<Reply> {
  // Not an AbortSignal: V8 keeps each of those until it collects all garbage, which it then does often.
  const signal = new EventEmitter();
  const before = givenUpOf(pool);
  const timer = setTimeout(() => {
    givenUp.set(pool, givenUpOf(pool) + 1);
    signal.emit('abort');
  }, taskTimeoutMs);
  try {
    return await pool.run(task, { signal, transferList });
  } catch (error) {
    if (givenUpOf(pool) === before) throw error;
    throw new TaskGivenUp('a task took too long: its thread was ended', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

type Served<Reply> = Exclude<Reply, { readonly unavailable: string }>;

/** What a thread tells. @throws ApiError UNAVAILABLE, as which the thread's own cannot cross the boundary */
export function served<Reply extends object>(reply: Reply): Served<Reply> {
  if (isRefused(reply)) throw unavailable(reply.unavailable);
  return reply as Served<Reply>;
}

const isRefused = (reply: object): reply is { readonly unavailable: string } => 'unavailable' in reply;

/**
 * As `runLimited`, for a caller that may try again.
 * @param tooLong told where the task was given up, also for those that shared its thread
 * @throws ApiError UNAVAILABLE, and what the task throws
 */
export async function runServed<Reply extends object>(
  pool: Piscina,
  task: unknown,
  tooLong: string,
): Promise<Served<Reply>> {
  const reply = await runLimited<Reply>(pool, task).catch((error: unknown) => {
    if (!(error instanceof TaskGivenUp)) throw error;
    throw unavailable(tooLong, error);
  });
  return served(reply);
}
