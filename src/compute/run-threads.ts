import { availableParallelism } from 'node:os';
import type { AnswersReply, FitTask, ItemsReply, Publication, PublishReply } from '../contracts/fit-tasks.js';
import type {
  CompareReply,
  CompareTask,
  LearnerRows,
  RebuildReply,
  RestoreReply,
  RestoreTask,
} from '../contracts/rebuild-tasks.js';
import type { StageArguments, StageName, StageResults } from '../domain/fit/stages.js';
import { served, startRunThreads } from './threads.js';

interface FitPoolOptions {
  /** Where absent, as many as the machine has cores. */
  readonly threads?: number | undefined;
  /** Whether this process answers requests: the threads then leave a core to it, and step back. */
  readonly beside: boolean;
  readonly redisUrl: string;
  readonly clickhouseUrl: string;
}

/** Most answers of one fit: columns, features and terms then take about 1.1 GB, and more answers change little. */
const maxAnswers = 1_500_000;
/** Steps back behind the threads that answer requests, where the operating system knows such a thing. */
const niceIncrement = 10;

const cores = availableParallelism();

export type FitThreads = ReturnType<typeof createFitPool>;

export function createFitPool({ threads, beside, redisUrl, clickhouseUrl }: FitPoolOptions) {
  const pool = startRunThreads('fit', threads ?? (beside ? Math.max(1, cores - 1) : cores), {
    // A fit has a bounded number of stages open; a queue without bound grows no further than that.
    maxQueue: Number.POSITIVE_INFINITY,
    niceIncrement: beside ? niceIncrement : 0,
  });
  const ask = <Reply>(task: FitTask) => pool.run<Reply>(task);
  return {
    ...pool,
    run: <Name extends StageName>(name: Name, ...args: StageArguments[Name]): Promise<StageResults[Name]> =>
      pool.run({ kind: 'stage', name, args }),
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

/** Pages that wait for a thread: the reader keeps few in flight. */
const maxQueue = 16;

export type RebuildThreads = ReturnType<typeof createRebuildPool>;

export function createRebuildPool(redisUrl: string, waitReplicas: number) {
  const workerData = { redisUrl, waitReplicas };
  const { threads, run, close } = startRunThreads('rebuild', Math.max(1, cores - 1), {
    maxQueue,
    workerData,
  });
  const ask = async <Reply extends RestoreReply | CompareReply>(task: RestoreTask | CompareTask) =>
    served(await run<RebuildReply<Reply>>(task));
  return {
    threads,
    close,
    /** Writes what the rows give. @throws ApiError UNAVAILABLE */
    restore: (rows: LearnerRows, partitions: number, idsFrom: number) =>
      ask<RestoreReply>({ kind: 'restore', rows, partitions, idsFrom }),
    /** Compares what is stored with what the rows give. @throws ApiError UNAVAILABLE */
    compare: (task: Omit<CompareTask, 'kind'>) => ask<CompareReply>({ kind: 'compare', ...task }),
  };
}
