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
import type { StageArguments, StageName, StageResults } from '../domain/fit/fit-stages.js';
import { served, startRunThreads } from './threads.js';

export interface FitPoolOptions {
  readonly threads?: number | undefined;
  /** Leaves one core to requests and lowers the threads' priority. */
  readonly beside: boolean;
  readonly redisUrl: string;
  readonly clickhouseUrl: string;
}

/** About 1.1 GB of columns, features and terms. More answers change little. */
const maxAnswers = 1_500_000;
const niceIncrement = 10;

const cores = availableParallelism();

export type FitThreads = ReturnType<typeof createFitPool>;

export function createFitPool({ threads, beside, redisUrl, clickhouseUrl }: FitPoolOptions) {
  const pool = startRunThreads('fit', threads ?? (beside ? Math.max(1, cores - 1) : cores), {
    // A fit limits its open stages.
    maxQueue: Number.POSITIVE_INFINITY,
    niceIncrement: beside ? niceIncrement : 0,
  });
  const ask = <Reply>(task: FitTask) => pool.run<Reply>(task);
  return {
    ...pool,
    run: <Name extends StageName>(name: Name, ...args: StageArguments[Name]): Promise<StageResults[Name]> =>
      pool.run({ kind: 'stage', name, args }),
    /** The bytes never enter this thread. */
    read: (tenant: string) => ask<AnswersReply>({ kind: 'read', clickhouseUrl, tenant, maxAnswers }),
    /** By item hash; zeros for items that the version did not see. */
    items: async (tenant: string, version: number, itemHashes: Uint8Array) =>
      served(await ask<ItemsReply>({ kind: 'items', redisUrl, tenant, version, itemHashes })),
    /** @returns false if another version was published first */
    publish: async (publication: Publication) =>
      served(await ask<PublishReply>({ kind: 'publish', redisUrl, ...publication })).published,
  };
}

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
    /** @throws ApiError UNAVAILABLE */
    restore: (rows: LearnerRows, partitions: number, idsSince: number) =>
      ask<RestoreReply>({ kind: 'restore', rows, partitions, idsSince }),
    /** @throws ApiError UNAVAILABLE */
    compare: (task: Omit<CompareTask, 'kind'>) => ask<CompareReply>({ kind: 'compare', ...task }),
  };
}
