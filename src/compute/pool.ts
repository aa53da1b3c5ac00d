import { availableParallelism } from 'node:os';
import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import type { Piscina } from 'piscina';
import { createLimiter, type LimiterOptions } from '../concurrency.js';
import type { TakeBackReply } from '../contracts/take-back-tasks.js';
import {
  type ForecastReply,
  slotCount,
  type TrackReply,
  type TrackTask,
  type WhatIfReply,
  type WhatIfTask,
  type WorkerSettings,
} from '../contracts/tasks.js';
import { ApiError, notCounted, unavailable } from '../errors.js';
import type { HistoryRewriter } from '../services/corrections/take-back.js';
import type { Logger } from '../telemetry.js';
import { createForecastBatcher, type Forecaster } from './forecast-batcher.js';
import { createLaneLoad } from './lane-load.js';
import { runLimited, runServed, TaskGivenUp } from './limited-run.js';
import { type AttemptTracker, createTracker, type Tracker } from './tracking.js';
import { startPool, tellThreadFailures } from './worker-entry.js';

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
const planLimits: LimiterOptions = {
  maxRunning: 4,
  maxRunningOfTenant: 2,
  maxQueuedOfTenant: 1000,
  maxQueueWaitMs: 15_000,
  refusal: 'Too many forecasts wait; try again later',
};

/** A batch and single answers of other tenants (compute/tracking.ts). */
const tasksOfLane = 2;

/** The thread takes all that are let in: each is read while others are computed, and long learners take turns there. */
const allForecasts = forecastTasks.tasks + planLimits.maxRunning;

/**
 * Starts the worker threads.
 *
 * There is one lane per thread, and no more lanes than the load asks for (measured: four lanes took twice the CPU per
 * answer of one).
 *
 * @param partitionOf partition of a learner: it decides the lane
 * @param lanes 0: as many as the load asks for
 */
export function startCompute(
  settings: WorkerSettings,
  partitionOf: (tenant: string, userId: string) => number,
  lanes: number,
  logger: Logger,
): Compute {
  const threads = lanes || Math.max(1, Math.min(4, availableParallelism() - 1));
  const tracking = Array.from({ length: threads }, () => startThread('track', settings, tasksOfLane, logger));
  const forecasting = startThread('forecast', settings, allForecasts, logger);
  const tracker = createTracker({
    lanes: lanes || 1,
    slotOf: (tenant, userId) => partitionOf(tenant, userId) % slotCount,
    run: (task, lane) => track(tracking[lane] as Piscina, task, logger),
    onFailure: (error) => logger.error({ err: error }, 'answers failed'),
  });
  const following = lanes === 0 ? followLoad(tracking, tracker) : undefined;
  const forecasts = createForecastBatcher({
    ...forecastTasks,
    maxLearners: maxForecastBatch,
    maxWaiting: maxWaitingForecasts,
    run: (task) => forecast<ForecastReply>(forecasting, task),
  });
  const limit = createLimiter(planLimits);
  const takingBack = startReplays(settings, logger);
  return {
    track: tracker.track,
    trackOne: tracker.trackOne,
    open: tracker.open,
    full: tracker.full,
    rewrite: (task) =>
      runServed<TakeBackReply>(takingBack, task, 'The replay took too long; try again later'),
    waiting: tracker.waiting,
    threads: () => [...tracking, forecasting].reduce((sum, pool) => sum + pool.threads.length, 0),
    forecast: forecasts.forecast,
    whatIf: (task, stillWanted) =>
      limit(task.tenant, () => {
        stillWanted();
        return whatIf(forecasting, { kind: 'what-if', ...task });
      }),
    close: async () => {
      clearInterval(following);
      tracker.stop();
      forecasts.stop();
      await Promise.all([...tracking, forecasting, takingBack].map((pool) => pool.close()));
    },
  };
}

const lookMs = 1000;

/** Lets the number of lanes follow how busy their threads are. */
function followLoad(tracking: readonly Piscina[], tracker: Tracker): NodeJS.Timeout {
  const load = createLaneLoad(tracking.length);
  const looks = tracking.map(busyLooks);
  let lanes = 1;
  return setInterval(() => {
    const busy = looks.map((look) => look());
    lanes = load(busy.slice(0, lanes));
    tracker.setLanes(lanes);
  }, lookMs).unref();
}

/** Tells the part of the time since the last look that a pool's thread was busy; 0 while it starts. */
function busyLooks(pool: Piscina): () => number {
  let before: EventLoopUtilization | undefined;
  return () => {
    const after = pool.threads[0]?.performance.eventLoopUtilization();
    // Of one time alone this thread's own would be told.
    const isKnown = after !== undefined && before !== undefined;
    const busy = isKnown ? performance.eventLoopUtilization(after, before).utilization : 0;
    before = after;
    return busy;
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
  const pool = startPool(entry, {
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker: tasks,
    loadBalancer: (_task, [thread]) => thread ?? null,
    maxQueue: tasks,
    workerData,
  });
  return tellThreadFailures(pool, logger);
}

/** The thread that replays learners without one answer; it is started when there is something to take back. */
function startReplays(workerData: WorkerSettings, logger: Logger): Piscina {
  const pool = startPool('takeBack', {
    minThreads: 0,
    maxThreads: 1,
    // It holds a connection and models, which nobody needs while nothing is taken back.
    idleTimeout: 60_000,
    // Far more than are let in at once (`limit`): Piscina's default queue has no bound.
    maxQueue: 4,
    workerData,
  });
  return tellThreadFailures(pool, logger);
}
