import { availableParallelism } from 'node:os';
import type { AnswersReply, FitTask, ItemsReply, Publication, PublishReply } from '../contracts/fit-tasks.js';
import type { StageArguments, StageName, StageResults } from '../domain/fit/stages.js';
import { served, startPool } from './threads.js';

interface StagePoolOptions {
  /** Where absent, as many as the machine has cores. */
  readonly threads?: number | undefined;
  /** Whether this process answers requests: the threads then leave a core to it, and step back. */
  readonly beside: boolean;
}

/** Most answers of one fit: columns and features then take about 0.7 GB, and more answers change little. */
const maxAnswers = 3_000_000;
/** Steps back behind the threads that answer requests, where the operating system knows such a thing. */
const niceIncrement = 10;

/** Threads for one run of fits. */
export type FitThreads = ReturnType<typeof createFitPool>;

export function createFitPool({
  redisUrl,
  clickhouseUrl,
  ...options
}: StagePoolOptions & { readonly redisUrl: string; readonly clickhouseUrl: string }) {
  const { runTask, ...stages } = createStagePool(options);
  const ask = <Reply>(task: FitTask) => runTask<Reply>(task);
  return {
    ...stages,
    /** Reads a tenant's answers; their bytes stay out of this thread. */
    read: (tenant: string) => ask<AnswersReply>({ kind: 'read', clickhouseUrl, tenant, maxAnswers }),
    /** What the version's fit found for items, by their hashes; zeros for those that it did not see. */
    items: async (tenant: string, version: number, itemHashes: Uint8Array) =>
      served(await ask<ItemsReply>({ kind: 'items', redisUrl, tenant, version, itemHashes })),
    /** Publishes a version. @returns false where another version came into force meanwhile */
    publish: async (publication: Publication) =>
      served(await ask<PublishReply>({ kind: 'publish', redisUrl, ...publication })).published,
  };
}

/** Threads for the stages alone. */
export function createStagePool({ threads, beside }: StagePoolOptions) {
  const cores = availableParallelism();
  const count = threads ?? Math.max(1, beside ? cores - 1 : cores);
  const pool = startPool('fit', {
    // All stay until the end: a thread takes longer to start than many a stage to run.
    minThreads: count,
    maxThreads: count,
    // A fit has a bounded number of stages open; a queue without bound grows no further than that.
    maxQueue: Number.POSITIVE_INFINITY,
    niceIncrement: beside ? niceIncrement : 0,
  });
  let failure: unknown;
  // A thread that cannot be started would end the process, and what waits for it would wait for ever.
  pool.on('error', (error) => {
    failure = error;
    void pool.destroy();
  });
  const runTask = async <Reply>(task: object): Promise<Reply> => {
    if (failure !== undefined) throw failure;
    return pool.run(task).catch((error: unknown) => {
      throw failure ?? error;
    });
  };
  return {
    runTask,
    threads: count,
    run: <Name extends StageName>(name: Name, ...args: StageArguments[Name]): Promise<StageResults[Name]> =>
      runTask({ kind: 'stage', name, args }),
    /** Ends them, whatever they do. */
    close: () => pool.destroy(),
  };
}
