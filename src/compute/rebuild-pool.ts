/** Threads that replay learners and write them to Redis. */
import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import type {
  CompareReply,
  CompareTask,
  RebuildReply,
  RestoreReply,
  RestoreTask,
} from '../contracts/rebuild-tasks.js';
import { unavailable } from '../errors.js';
import type { RebuildThreads } from '../services/rebuild/ports.js';
import { workerEntry } from './worker-entry.js';

/** Pages that wait for a thread: the reader keeps few in flight. */
const maxQueue = 16;

export function createRebuildPool(redisUrl: string, waitReplicas: number): RebuildThreads {
  const threads = Math.max(1, availableParallelism() - 1);
  const pool = new Piscina({
    ...workerEntry('rebuild'),
    minThreads: threads,
    maxThreads: threads,
    maxQueue,
    atomics: 'disabled',
    workerData: { redisUrl, waitReplicas },
  });
  const run = async <Reply extends object>(task: RestoreTask | CompareTask): Promise<Reply> => {
    const reply: RebuildReply<Reply> = await pool.run(task);
    if ('unavailable' in reply) throw unavailable(reply.unavailable);
    return reply;
  };
  return {
    threads,
    restore: ({ rows }, { count, partitions, idsFrom, buckets }) => {
      const byPartition = Object.fromEntries(partitions.map((partition, i) => [partition, buckets[i] ?? 1]));
      const learners = { rows, partitions: count };
      return run<RestoreReply>({ kind: 'restore', ...learners, idsFrom, buckets: byPartition });
    },
    compare: ({ rows }, count) => run<CompareReply>({ kind: 'compare', rows, partitions: count }),
    close: () => pool.destroy(),
  };
}
