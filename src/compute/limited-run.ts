import { EventEmitter } from 'node:events';
import type { Piscina } from 'piscina';

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
    const reply: Reply = await pool.run(task, { signal, transferList });
    return reply;
  } catch (error) {
    if (givenUpOf(pool) === before) throw error;
    throw new TaskGivenUp('a task took too long: its thread was ended', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
