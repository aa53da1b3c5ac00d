import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import type {
  ForecastReply,
  ForecastTask,
  TrackEvent,
  TrackReply,
  TrackTask,
  WhatIfReply,
  WhatIfTask,
  WorkerSettings,
} from '../contracts/tasks.js';
import { ApiError, unavailable } from '../errors.js';
import type { AttemptTracker, Forecaster } from '../services/ports.js';
import type { Logger } from '../telemetry.js';
import { createBatcher } from './batcher.js';

/** The workers that count answers and compute forecasts. */
export interface Compute extends AttemptTracker, Forecaster {
  /** Events that wait for a batch. */
  readonly waiting: () => number;
  readonly threads: () => number;
  close(): Promise<void>;
}

const maxBatch = 512;
/** Waiting events per lane; all lanes together never refuse below 1,000 waiting answers (contract). */
const maxWaiting = 5000;
/** A batch that takes longer is given up and its thread ended: something in it does not end. */
const batchTimeoutMs = 15_000;
const maxForecastQueue = 1000;

/**
 * Starts the worker threads.
 *
 * Atomics are off: in Piscina's default mode an idle worker sleeps in Atomics.wait, and the Redis connection that
 * lives in it is not served meanwhile, so replies, time-outs and reconnects would wait for the next task.
 *
 * There is one lane per thread: more lanes make smaller batches, and a batch costs two round trips whatever its
 * size (measured: four lanes took twice the CPU per answer of one).
 *
 * @param laneKey partition of an event's learner: it decides the lane
 */
export function startCompute(
  settings: WorkerSettings,
  laneKey: (event: TrackEvent) => number,
  logger: Logger,
): Compute {
  const threads = Math.max(1, Math.min(4, availableParallelism() - 1));
  const tracking = startPool('track', threads, settings, { tasks: 1, queue: threads });
  const forecasting = startPool('forecast', 1, settings, { tasks: 8, queue: maxForecastQueue });
  const batcher = createBatcher({
    lanes: threads,
    laneOf: (event) => laneKey(event) % threads,
    maxBatch,
    maxWaiting,
    run: (task) => track(tracking, task, logger),
    onFailure: (error) => logger.error({ err: error }, 'a batch of answers failed'),
  });
  return {
    track: batcher.track,
    waiting: batcher.waiting,
    threads: () => tracking.threads.length + forecasting.threads.length,
    forecast: async (task) => (await forecast(forecasting, { kind: 'predictions', ...task })).data,
    whatIf: (task) => whatIf(forecasting, { kind: 'what-if', ...task }),
    close: async () => {
      batcher.stop();
      await Promise.all([tracking.close(), forecasting.close()]);
    },
  };
}

/** A batch that was given up may have been committed, so the caller is to try again with its event ids. */
async function track(
  pool: Piscina,
  task: TrackTask,
  logger: Logger,
): Promise<TrackReply | { readonly unavailable: string }> {
  try {
    return await pool.run(task, { signal: AbortSignal.timeout(batchTimeoutMs) });
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    logger.error({ err: error }, 'a batch of answers took too long and was given up');
    return { unavailable: 'Counting took too long; try again with the same event_id' };
  }
}

const forecast = async (pool: Piscina, task: ForecastTask) =>
  served(await enqueue<ForecastReply>(pool, task));

async function whatIf(pool: Piscina, task: WhatIfTask): Promise<string | null> {
  const reply = served(await enqueue<WhatIfReply>(pool, task));
  if ('data' in reply) return reply.data;
  const details = reply.unknownSkills.map((id) => ({ path: 'skills', message: `${id} is not known` }));
  throw new ApiError('SKILL_NOT_FOUND', 'The plan has skills that nobody set or answered', { details });
}

async function enqueue<Reply>(pool: Piscina, task: ForecastTask | WhatIfTask): Promise<Reply> {
  if (pool.queueSize >= maxForecastQueue) throw unavailable('Too many forecasts wait; try again later');
  return pool.run(task);
}

function served<Reply extends object>(reply: Reply): Exclude<Reply, { readonly unavailable: string }> {
  if (isRefused(reply)) throw unavailable(reply.unavailable);
  return reply as Exclude<Reply, { readonly unavailable: string }>;
}

const isRefused = (reply: object): reply is { readonly unavailable: string } => 'unavailable' in reply;

/** A bounded pool whose threads stay: Piscina's default queue has no bound. */
function startPool(
  entry: string,
  threads: number,
  workerData: WorkerSettings,
  { tasks, queue }: { readonly tasks: number; readonly queue: number },
): Piscina {
  return new Piscina({
    filename: fileURLToPath(new URL(`../../workers/${entry}.js`, import.meta.url)),
    minThreads: threads,
    maxThreads: threads,
    concurrentTasksPerWorker: tasks,
    maxQueue: queue,
    atomics: 'disabled',
    workerData,
  });
}
