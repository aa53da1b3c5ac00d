import { availableParallelism } from 'node:os';
import { Piscina } from 'piscina';
import type {
  ForecastReply,
  TrackReply,
  TrackTask,
  WhatIfReply,
  WhatIfTask,
  WorkerSettings,
} from '../contracts/tasks.js';
import { ApiError, notCounted, unavailable } from '../errors.js';
import type { AttemptTracker, Forecaster } from '../services/ports.js';
import type { HistoryRewriter } from '../services/take-back.js';
import { createTurns, type TurnRules } from '../services/turns.js';
import type { Logger } from '../telemetry.js';
import { createForecastBatcher } from './forecast-batcher.js';
import { runLimited, runServed, TaskGivenUp } from './limited-run.js';
import { createTakeBackPool } from './take-back-pool.js';
import { createTracker } from './tracking.js';
import { tellThreadFailures, workerEntry } from './worker-entry.js';

/** The workers that count answers and compute forecasts. */
export interface Compute extends AttemptTracker, Forecaster, HistoryRewriter {
  /** Requests with answers that wait for a batch. */
  readonly waiting: () => number;
  readonly threads: () => number;
  close(): Promise<void>;
}

/** Of one tenant. */
const maxWaitingForecasts = 1000;
/**
 * Learners of one task, and tasks that are away: while some are computed, the learners of the next are read and what the
 * last came to is told. Fewer and larger ones cost no less and keep the threads waiting for each other (measured: 25
 * and 2 served a fifth less). One tenant has half: with all of them, somebody else's forecast took 250 ms beside its classes.
 */
const maxForecastBatch = 8;
const forecastTasks = { tasks: 6, tasksOfTenant: 3 };
const planTurns: TurnRules = {
  atOnce: 4,
  ofTenant: 2,
  mostWaiting: 1000,
  waitMs: 15_000,
  refusal: 'Too many forecasts wait; try again later',
};

/** A batch and single answers of other tenants (compute/tracking.ts). */
const tasksOfLane = 2;

/** The thread takes all that are let in: each is read while others are computed, and long learners take turns there. */
const allForecasts = forecastTasks.tasks + planTurns.atOnce;

/**
 * Starts the worker threads.
 *
 * Atomics are off: in Piscina's default mode an idle worker sleeps in Atomics.wait, and the Redis connection that
 * lives in it is not served meanwhile, so replies, time-outs and reconnects would wait for the next task.
 *
 * There is one lane per thread: more lanes make smaller batches, and a batch costs two round trips whatever its
 * size (measured: four lanes took twice the CPU per answer of one).
 *
 * @param partitionOf partition of a learner: it decides the lane
 */
export function startCompute(
  settings: WorkerSettings,
  partitionOf: (tenant: string, userId: string) => number,
  logger: Logger,
): Compute {
  const threads = Math.max(1, Math.min(4, availableParallelism() - 1));
  const tracking = Array.from({ length: threads }, () => startThread('track', settings, tasksOfLane, logger));
  const forecasting = startThread('forecast', settings, allForecasts, logger);
  const tracker = createTracker({
    lanes: threads,
    laneOf: (tenant, userId) => partitionOf(tenant, userId) % threads,
    run: (task) => track(tracking[task.lane] as Piscina, task, logger),
    onFailure: (error) => logger.error({ err: error }, 'answers failed'),
  });
  const forecasts = createForecastBatcher({
    ...forecastTasks,
    maxLearners: maxForecastBatch,
    maxWaiting: maxWaitingForecasts,
    run: (task) => forecast<ForecastReply>(forecasting, task),
  });
  const inTurn = createTurns(planTurns);
  const takingBack = createTakeBackPool(settings, logger);
  return {
    track: tracker.track,
    full: tracker.full,
    rewrite: takingBack.rewrite,
    waiting: tracker.waiting,
    threads: () => [...tracking, forecasting].reduce((sum, pool) => sum + pool.threads.length, 0),
    forecast: forecasts.forecast,
    whatIf: (task, stillWanted) =>
      inTurn(task.tenant, () => {
        stillWanted();
        return whatIf(forecasting, { kind: 'what-if', ...task });
      }),
    close: async () => {
      tracker.stop();
      forecasts.stop();
      await Promise.all([...tracking, forecasting, takingBack].map((pool) => pool.close()));
    },
  };
}

/**
 * A batch that was given up may have been committed, so the caller is to try again with its event ids.
 * @throws ApiError UNAVAILABLE, INTERNAL
 */
async function track(pool: Piscina, task: TrackTask, logger: Logger): Promise<TrackReply> {
  try {
    return await runLimited<TrackReply>(pool, task, [task.bodies.buffer as ArrayBuffer]);
  } catch (error) {
    logger.error({ err: error }, 'a batch of answers failed');
    if (error instanceof TaskGivenUp)
      throw unavailable('Counting took too long; try again with the same event_id', error);
    throw notCounted(error);
  }
}

const forecast = <Reply extends object>(pool: Piscina, task: unknown) =>
  runServed<Reply>(pool, task, 'Forecasting took too long; try again later');

async function whatIf(pool: Piscina, task: WhatIfTask): Promise<string | null> {
  const reply = await forecast<WhatIfReply>(pool, task);
  if ('data' in reply) return reply.data;
  const details = reply.unknownSkills.map((id) => ({ path: 'skills', message: `${id} is not known` }));
  throw new ApiError('SKILL_NOT_FOUND', 'The plan has skills that nobody set or answered', { details });
}

/**
 * A pool of one thread, which stays and does several tasks at once; its queue is bounded.
 *
 * Its own balancer: Piscina's gives a thread nothing beside a task that can be aborted, as all of ours can (limited-run.ts).
 */
function startThread(
  entry: 'track' | 'forecast',
  workerData: WorkerSettings,
  tasks: number,
  logger: Logger,
): Piscina {
  const pool = new Piscina({
    ...workerEntry(entry),
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker: tasks,
    loadBalancer: (_task, [thread]) => thread ?? null,
    maxQueue: tasks,
    atomics: 'disabled',
    recordTiming: false,
    workerData,
  });
  return tellThreadFailures(pool, logger);
}
