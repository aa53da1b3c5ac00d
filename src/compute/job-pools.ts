import { availableParallelism } from 'node:os';
import type {
  AnswersReply,
  FitTask,
  ItemsReply,
  Publication,
  PublishReply,
} from '../contracts/models/fit-tasks.js';
import type {
  CompareReply,
  CompareTask,
  LearnerRows,
  RebuildReply,
  RestoreReply,
  RestoreTask,
} from '../contracts/rebuild/rebuild-tasks.js';
import type { StageArguments, StageName, StageResults } from '../domain/fit/fit-stages.js';
import { startFixedPool, unwrapReply } from './thread-pools.js';

export interface FitPoolOptions {
  readonly threads?: number | undefined;
  /** Leaves one core to requests and lowers the threads' priority. */
  readonly servesRequests: boolean;
  readonly redisUrl: string;
  readonly clickhouseUrl: string;
}

/** About 1.1 GB of columns, features and terms. More answers change little. */
const maxAnswers = 1_500_000;
const niceIncrement = 10;

const cores = availableParallelism();

export type FitPool = ReturnType<typeof createFitPool>;

export function createFitPool({ threads, servesRequests, redisUrl, clickhouseUrl }: FitPoolOptions) {
  const pool = startFixedPool('fit', threads ?? (servesRequests ? Math.max(1, cores - 1) : cores), {
    // A fit limits its open stages.
    maxQueue: Number.POSITIVE_INFINITY,
    niceIncrement: servesRequests ? niceIncrement : 0,
  });
  const runTask = <Reply>(task: FitTask) => pool.run<Reply>(task);
  return {
    ...pool,
    run: <Name extends StageName>(name: Name, ...args: StageArguments[Name]): Promise<StageResults[Name]> =>
      pool.run({ kind: 'stage', name, args }),
    /** The bytes never enter this thread. */
    readAnswers: (tenant: string) =>
      runTask<AnswersReply>({ kind: 'read', clickhouseUrl, tenant, maxAnswers }),
    /** By item hash; zeros for items that the version did not see. */
    readItems: async (tenant: string, version: number, itemHashes: Uint8Array) =>
      unwrapReply(await runTask<ItemsReply>({ kind: 'items', redisUrl, tenant, version, itemHashes })),
    /** @returns false if another version was published first */
    publish: async (publication: Publication) =>
      unwrapReply(await runTask<PublishReply>({ kind: 'publish', redisUrl, ...publication })).published,
  };
}

const maxRebuildQueue = 16;

export type RebuildPool = ReturnType<typeof createRebuildPool>;

/** @param timeZones current zones by tenant; missing: UTC */
export function createRebuildPool(
  redisUrl: string,
  waitReplicas: number,
  timeZones: ReadonlyMap<string, string>,
) {
  const workerData = { redisUrl, waitReplicas, timeZones };
  const { threads, run, close } = startFixedPool('rebuild', Math.max(1, cores - 1), {
    maxQueue: maxRebuildQueue,
    workerData,
  });
  const runTask = async <Reply extends RestoreReply | CompareReply>(task: RestoreTask | CompareTask) =>
    unwrapReply(await run<RebuildReply<Reply>>(task));
  return {
    threads,
    close,
    /** @throws ApiError UNAVAILABLE */
    restore: (rows: LearnerRows, partitions: number, idsFromSecond: number) =>
      runTask<RestoreReply>({ kind: 'restore', rows, partitions, idsFromSecond }),
    /** @throws ApiError UNAVAILABLE */
    compare: (task: Omit<CompareTask, 'kind'>) => runTask<CompareReply>({ kind: 'compare', ...task }),
  };
}
