import { availableParallelism } from 'node:os';
import { type EventLoopUtilization, performance } from 'node:perf_hooks';
import { createLimiter, type LimiterOptions } from '../concurrency.js';
import { slotCount, type TrackReply, type TrackTask } from '../contracts/answers/track-task.js';
import type {
  RetractionReply,
  RetractionTask,
  TimeZoneReply,
  TimeZoneTask,
} from '../contracts/corrections/rewrite-tasks.js';
import type {
  ForecastReply,
  NextItemsReply,
  NextItemsTask,
  WhatIfReply,
  WhatIfTask,
} from '../contracts/forecasts/forecast-tasks.js';
import type { WorkerSettings } from '../contracts/settings/worker-settings.js';
import { ApiError, countingError, unavailable } from '../errors.js';
import type { Logger } from '../logger.js';
import { type AbortCheck, createForecastBatcher } from './forecast-batcher.js';
import { createLanes, type Lanes } from './lanes.js';
import { startRepeatRejection } from './stuck-repeats.js';
import { onDemandOptions, ServingPool, startMultiTaskPool, TaskAbortedError } from './thread-pools.js';

/** A tenant has at most half of the tasks, so that its classes do not delay other tenants. */
const forecastLimits = { maxLearners: 8, maxTasks: 6, maxTenantTasks: 3, maxTenantOrders: 1000 };
const adviceLimits: LimiterOptions = {
  maxRunning: 4,
  maxRunningOfTenant: 2,
  maxQueuedOfTenant: 1000,
  maxQueueWaitMs: 15_000,
  rejectionMessage: 'The forecast queue is full; retry later.',
};
const replayTimeoutMessage = 'The replay of the learner timed out; retry later.';
const forecastTimeoutMessage = 'The forecast timed out; retry later.';

/** One of batches, one of single answers (lanes.ts). */
const tasksPerLane = 2;

export type Compute = ReturnType<typeof startCompute>;

/** One lane per worker thread (ADR 18). @param laneCount 0: by load */
export function startCompute(
  workerData: WorkerSettings,
  partitionOf: (tenant: string, userId: string) => number,
  laneCount: number,
  logger: Logger,
) {
  const threadCount = laneCount || Math.max(1, Math.min(4, availableParallelism() - 1));
  const trackPools = Array.from({ length: threadCount }, () =>
    startMultiTaskPool('track', tasksPerLane, { workerData }, logger),
  );
  // The thread reads data for some tasks while it computes others.
  const maxForecastTasks = forecastLimits.maxTasks + adviceLimits.maxRunning;
  const forecastPool = startMultiTaskPool('forecast', maxForecastTasks, { workerData }, logger);
  // Piscina's default queue has no limit.
  const rewritePool = new ServingPool('rewrite', { ...onDemandOptions, workerData, maxQueue: 4 }, logger);
  const lanes = createLanes({
    laneCount: laneCount || 1,
    findSlot: (tenant, userId) => partitionOf(tenant, userId) % slotCount,
    run: (task, lane) => runTrackTask(trackPools[lane] as ServingPool, task, logger),
    onFailure: (error) => logger.error({ err: error }, 'cannot count answers'),
  });
  startRepeatRejection(lanes.listOpenEvents);
  const scalingTimer = laneCount === 0 ? startLaneScaling(trackPools, lanes) : undefined;
  const forecasts = createForecastBatcher({
    ...forecastLimits,
    run: (task) => forecastPool.runAvailable<ForecastReply>(task, forecastTimeoutMessage),
  });
  const runLimited = createLimiter(adviceLimits);
  const runAdvice = <Reply extends object>(task: WhatIfTask | NextItemsTask, throwIfAborted: AbortCheck) =>
    runLimited(task.tenant, () => {
      throwIfAborted();
      return forecastPool.runAvailable<Reply>(task, forecastTimeoutMessage);
    });
  return {
    track: lanes.track,
    trackEvent: lanes.trackEvent,
    findOverload: lanes.findOverload,
    countQueued: lanes.countQueued,
    /** @throws ApiError UNAVAILABLE */
    retract: (task: RetractionTask) => rewritePool.runAvailable<RetractionReply>(task, replayTimeoutMessage),
    /** @throws ApiError UNAVAILABLE */
    changeTimeZone: (task: TimeZoneTask) =>
      rewritePool.runAvailable<TimeZoneReply>(task, replayTimeoutMessage),
    threads: () => [...trackPools, forecastPool].reduce((sum, { threads }) => sum + threads.length, 0),
    /** @throws ApiError UNAVAILABLE, and errors of `throwIfAborted` */
    forecast: forecasts.forecast,
    /** Null for a learner without answers. @throws as `forecast`, and ApiError SKILL_NOT_FOUND */
    whatIf: async (task: Omit<WhatIfTask, 'kind'>, throwIfAborted: AbortCheck) =>
      unwrapWhatIf(await runAdvice<WhatIfReply>({ kind: 'what-if', ...task }, throwIfAborted)),
    nextItems: async (task: Omit<NextItemsTask, 'kind'>, throwIfAborted: AbortCheck): Promise<string> =>
      (await runAdvice<NextItemsReply>({ kind: 'next-items', ...task }, throwIfAborted)).data,
    close: async () => {
      clearInterval(scalingTimer);
      lanes.stop();
      forecasts.stop();
      await Promise.all([...trackPools, forecastPool, rewritePool].map((pool) => pool.close()));
    },
  };
}

/**
 * An aborted batch may be committed: clients retry with the same event ids. @throws ApiError UNAVAILABLE,
 * INTERNAL
 */
async function runTrackTask(pool: ServingPool, task: TrackTask, logger: Logger): Promise<TrackReply> {
  try {
    return await pool.run<TrackReply>(task, [task.bodies.buffer as ArrayBuffer]);
  } catch (error) {
    logger.error({ err: error }, 'cannot count a batch of answers');
    if (error instanceof TaskAbortedError)
      throw unavailable('Counting the answer timed out; retry with the same event_id.', error);
    throw countingError(error);
  }
}

function unwrapWhatIf(reply: Exclude<WhatIfReply, { readonly unavailable: string }>): string | null {
  if ('data' in reply) return reply.data;
  const details = reply.unknownSkills.map((id) => ({ path: 'skills', message: `unknown skill_id ${id}` }));
  throw new ApiError(
    'SKILL_NOT_FOUND',
    'The plan has unknown skills: no answers and no configuration. See details.',
    { details },
  );
}

const loadCheckMs = 1000;

function startLaneScaling(trackPools: readonly ServingPool[], lanes: Lanes): NodeJS.Timeout {
  const computeLaneCount = createLaneScaler(trackPools.length);
  let before: (EventLoopUtilization | undefined)[] = [];
  let count = 1;
  return setInterval(() => {
    const after = trackPools.map(({ threads }) => threads[0]?.performance.eventLoopUtilization());
    const busy = after.map((now, i) => {
      const last = before[i];
      // With one argument it returns the utilization of this thread.
      return now && last ? performance.eventLoopUtilization(now, last).utilization : 0;
    });
    before = after;
    count = computeLaneCount(busy.slice(0, count));
    lanes.setLaneCount(count);
  }, loadCheckMs).unref();
}

const saturatedShare = 0.9;
/** A lane is removed if the others would stay below this share. */
const relaxedShare = 0.6;
const quietChecks = 10;

export function createLaneScaler(maxLanes: number): (busy: readonly number[]) => number {
  let quietCount = 0;
  return (busy) => {
    const lanes = busy.length;
    const totalBusy = busy.reduce((sum, one) => sum + one, 0);
    quietCount = lanes > 1 && totalBusy < relaxedShare * (lanes - 1) ? quietCount + 1 : 0;
    if (totalBusy >= saturatedShare * lanes) return Math.min(maxLanes, lanes + 1);
    if (quietCount < quietChecks) return lanes;
    quietCount = 0;
    return lanes - 1;
  };
}
