import { availableParallelism } from 'node:os';
import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { createLimiter, type LimiterOptions } from '../concurrency.js';
import {
  type ForecastReply,
  type NextItemsReply,
  type NextItemsTask,
  type RetractionReply,
  type RetractionTask,
  slotCount,
  type TrackReply,
  type TrackTask,
  type WhatIfReply,
  type WhatIfTask,
  type WorkerSettings,
} from '../contracts/worker-tasks.js';
import { ApiError, countingError, unavailable } from '../errors.js';
import type { Logger } from '../logger.js';
import { createForecastBatcher, type StillWanted } from './forecast-batcher.js';
import { createLanes, type Lanes } from './lanes.js';
import { watchRepeats } from './repeats.js';
import { onDemand, ServingThreads, startSharedThread, TaskAborted } from './threads.js';

const forecastLimits = { maxLearners: 8, tasks: 6, tasksOfTenant: 3, maxWaiting: 1000 };
const planLimits: LimiterOptions = {
  maxRunning: 4,
  maxRunningOfTenant: 2,
  maxQueuedOfTenant: 1000,
  maxQueueWaitMs: 15_000,
  rejectionMessage: 'Too many forecasts wait; try again later',
};
const tooLongForecast = 'Forecasting took too long; try again later';

/** One of batches, one of single answers (lanes.ts). */
const tasksOfLane = 2;

export type Compute = ReturnType<typeof startCompute>;

/** One lane per worker thread (ADR 32). @param laneCount 0: by load */
export function startCompute(
  workerData: WorkerSettings,
  partitionOf: (tenant: string, userId: string) => number,
  laneCount: number,
  logger: Logger,
) {
  const threads = laneCount || Math.max(1, Math.min(4, availableParallelism() - 1));
  const tracking = Array.from({ length: threads }, () =>
    startSharedThread('track', tasksOfLane, { workerData }, logger),
  );
  // The thread reads data for some tasks while it computes others.
  const allForecasts = forecastLimits.tasks + planLimits.maxRunning;
  const forecasting = startSharedThread('forecast', allForecasts, { workerData }, logger);
  // Piscina's default queue has no limit.
  const retracting = new ServingThreads('retract', { ...onDemand, workerData, maxQueue: 4 }, logger);
  const lanes = createLanes({
    lanes: laneCount || 1,
    slotOf: (tenant, userId) => partitionOf(tenant, userId) % slotCount,
    run: (task, lane) => track(tracking[lane] as ServingThreads, task, logger),
    onFailure: (error) => logger.error({ err: error }, 'answers failed'),
  });
  watchRepeats(lanes.open);
  const following = laneCount === 0 ? followLoad(tracking, lanes) : undefined;
  const forecasts = createForecastBatcher({
    ...forecastLimits,
    run: (task) => forecasting.ask<ForecastReply>(task, tooLongForecast),
  });
  const limit = createLimiter(planLimits);
  const plan = <Reply extends object>(task: WhatIfTask | NextItemsTask, stillWanted: StillWanted) =>
    limit(task.tenant, () => {
      stillWanted();
      return forecasting.ask<Reply>(task, tooLongForecast);
    });
  return {
    track: lanes.track,
    trackOne: lanes.trackOne,
    full: lanes.full,
    waiting: lanes.waiting,
    /** @throws ApiError UNAVAILABLE */
    retract: (task: RetractionTask) =>
      retracting.ask<RetractionReply>(task, 'The replay took too long; try again later'),
    threads: () => [...tracking, forecasting].reduce((sum, { workers }) => sum + workers.length, 0),
    /** @throws ApiError UNAVAILABLE, and errors of `throwIfAborted` */
    forecast: forecasts.forecast,
    /** Null for a learner without answers. @throws as `forecast`, and ApiError SKILL_NOT_FOUND */
    whatIf: async (task: Omit<WhatIfTask, 'kind'>, stillWanted: StillWanted) =>
      planned(await plan<WhatIfReply>({ kind: 'what-if', ...task }, stillWanted)),
    nextItems: async (task: Omit<NextItemsTask, 'kind'>, stillWanted: StillWanted): Promise<string> =>
      (await plan<NextItemsReply>({ kind: 'next-items', ...task }, stillWanted)).data,
    close: async () => {
      clearInterval(following);
      lanes.stop();
      forecasts.stop();
      await Promise.all([...tracking, forecasting, retracting].map((pool) => pool.close()));
    },
  };
}

/**
 * An aborted batch may be committed: clients retry with the same event ids. @throws ApiError UNAVAILABLE,
 * INTERNAL
 */
async function track(threads: ServingThreads, task: TrackTask, logger: Logger): Promise<TrackReply> {
  try {
    return await threads.run<TrackReply>(task, [task.bodies.buffer as ArrayBuffer]);
  } catch (error) {
    logger.error({ err: error }, 'a batch of answers failed');
    if (error instanceof TaskAborted)
      throw unavailable('Counting took too long; try again with the same event_id', error);
    throw countingError(error);
  }
}

function planned(reply: Exclude<WhatIfReply, { readonly unavailable: string }>): string | null {
  if ('data' in reply) return reply.data;
  const details = reply.unknownSkills.map((id) => ({ path: 'skills', message: `${id} is not known` }));
  throw new ApiError('SKILL_NOT_FOUND', 'The plan has skills that nobody set or answered', { details });
}

const lookMs = 1000;

function followLoad(tracking: readonly ServingThreads[], lanes: Lanes): NodeJS.Timeout {
  const laneCount = createLaneLoad(tracking.length);
  let before: (EventLoopUtilization | undefined)[] = [];
  let count = 1;
  return setInterval(() => {
    const after = tracking.map(({ workers }) => workers[0]?.performance.eventLoopUtilization());
    const busy = after.map((now, i) => {
      const last = before[i];
      // With one argument it returns the utilization of this thread.
      return now && last ? performance.eventLoopUtilization(now, last).utilization : 0;
    });
    before = after;
    count = laneCount(busy.slice(0, count));
    lanes.setLanes(count);
  }, lookMs).unref();
}

const saturated = 0.9;
/** A lane is removed if the others would stay below this share. */
const easy = 0.6;
const quietLooks = 10;

export function createLaneLoad(maxLanes: number): (busy: readonly number[]) => number {
  let quiet = 0;
  return (busy) => {
    const lanes = busy.length;
    const all = busy.reduce((sum, one) => sum + one, 0);
    quiet = lanes > 1 && all < easy * (lanes - 1) ? quiet + 1 : 0;
    if (all >= saturated * lanes) return Math.min(maxLanes, lanes + 1);
    if (quiet < quietLooks) return lanes;
    quiet = 0;
    return lanes - 1;
  };
}
