/** Threads that replay learners. */
import { availableParallelism } from 'node:os';
import type {
  CompareReply,
  CompareTask,
  LearnerRows,
  RebuildReply,
  RestoreReply,
  RestoreTask,
} from '../contracts/rebuild-tasks.js';
import { served, startPool } from './threads.js';

/** Pages that wait for a thread: the reader keeps few in flight. */
const maxQueue = 16;

export type RebuildThreads = ReturnType<typeof createRebuildPool>;

export function createRebuildPool(redisUrl: string, waitReplicas: number) {
  const threads = Math.max(1, availableParallelism() - 1);
  const size = { minThreads: threads, maxThreads: threads, maxQueue };
  const pool = startPool('rebuild', { ...size, workerData: { redisUrl, waitReplicas } });
  const run = async <Reply extends RestoreReply | CompareReply>(task: RestoreTask | CompareTask) =>
    served<RebuildReply<Reply>>(await pool.run(task));
  return {
    threads,
    /** Writes what the rows give. @throws ApiError UNAVAILABLE */
    restore: (rows: LearnerRows, partitions: number, idsFrom: number) =>
      run<RestoreReply>({ kind: 'restore', rows, partitions, idsFrom }),
    /** Compares what is stored with what the rows give. @throws ApiError UNAVAILABLE */
    compare: (task: Omit<CompareTask, 'kind'>) => run<CompareReply>({ kind: 'compare', ...task }),
    close: () => pool.destroy(),
  };
}
