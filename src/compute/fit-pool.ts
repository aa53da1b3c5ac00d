import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import type { AnswersReply, ItemsReply, PublishReply } from '../contracts/fit-tasks.js';
import type { StageArguments, StageName, StageResults, StageRunner } from '../domain/fit-stages.js';
import { unavailable } from '../errors.js';
import type { FitThreads } from '../services/fit-ports.js';
import { workerEntry } from './worker-entry.js';

export interface StagePoolOptions {
  /** Where absent, as many as the machine has cores. */
  readonly threads?: number | undefined;
  /** Whether this process answers requests: the threads then leave a core to it, and step back. */
  readonly beside: boolean;
}

export interface FitPoolOptions extends StagePoolOptions {
  readonly redisUrl: string;
  readonly clickhouseUrl: string;
}

/** Most answers of one fit: columns and features then take about 0.7 GB, and more answers change little. */
const maxAnswers = 3_000_000;
/** Steps back behind the threads that answer requests, where the operating system knows such a thing. */
const niceIncrement = 10;

/** Threads for the stages alone. */
export interface StagePool extends StageRunner {
  /** Ends them, whatever they do. */
  close(): Promise<void>;
}

export function createStagePool(options: StagePoolOptions): StagePool {
  const { pool, runTask: _, ...stages } = startThreads(options);
  return { ...stages, close: () => pool.destroy() };
}

/** Starts threads for one run of fits. */
export function createFitPool({ redisUrl, clickhouseUrl, ...options }: FitPoolOptions): FitThreads {
  const { pool, runTask, ...stages } = startThreads(options);
  return {
    ...stages,
    read: (tenant) => runTask<AnswersReply>({ kind: 'read', clickhouseUrl, tenant, maxAnswers }),
    items: async (tenant, version, itemHashes) => {
      const reply = await runTask<ItemsReply>({ kind: 'items', redisUrl, tenant, version, itemHashes });
      if ('unavailable' in reply) throw unavailable(reply.unavailable);
      return reply;
    },
    publish: async (task) => {
      const reply = await runTask<PublishReply>({ kind: 'publish', redisUrl, ...task });
      if ('unavailable' in reply) throw unavailable(reply.unavailable);
      return reply.published;
    },
    close: () => pool.destroy(),
  };
}

function startThreads({ threads, beside }: StagePoolOptions) {
  const cores = availableParallelism();
  const count = threads ?? Math.max(1, beside ? cores - 1 : cores);
  const pool = new Piscina({
    ...workerEntry('fit'),
    // All stay until the end: a thread takes longer to start than many a stage to run.
    minThreads: count,
    maxThreads: count,
    // A fit has a bounded number of stages open; a queue without bound grows no further than that.
    maxQueue: Number.POSITIVE_INFINITY,
    atomics: 'disabled',
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
    pool,
    runTask,
    threads: count,
    run: <Name extends StageName>(name: Name, ...args: StageArguments[Name]): Promise<StageResults[Name]> =>
      runTask({ kind: 'stage', name, args }),
  };
}
