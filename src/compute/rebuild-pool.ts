/** Threads that replay learners and write them to Redis. */
import { availableParallelism } from 'node:os';
import type {
  CompareReply,
  CompareTask,
  RebuildReply,
  RestoreReply,
  RestoreTask,
} from '../contracts/rebuild-tasks.js';
import type { RebuildThreads } from '../services/rebuild/ports.js';
import { served, startPool } from './threads.js';

/** Pages that wait for a thread: the reader keeps few in flight. */
const maxQueue = 16;

export function createRebuildPool(redisUrl: string, waitReplicas: number): RebuildThreads {
  const threads = Math.max(1, availableParallelism() - 1);
  const pool = startPool('rebuild', {
    minThreads: threads,
    maxThreads: threads,
    maxQueue,
    workerData: { redisUrl, waitReplicas },
  });
  const run = async <Reply extends object>(task: RestoreTask | CompareTask) =>
    served<RebuildReply<Reply>>(await pool.run(task));
  return {
    threads,
    restore: ({ rows }, { count, idsFrom }) =>
      run<RestoreReply>({ kind: 'restore', rows, partitions: count, idsFrom }),
    compare: ({ rows }, count) => run<CompareReply>({ kind: 'compare', rows, partitions: count }),
    close: () => pool.destroy(),
  };
}
