/** Periodic work with one run at a time across all processes. */
import type { Queue } from 'bullmq';
import type { Logger } from '../logger.js';
import { type Consumer, openQueue, startConsumer } from './consumer.js';

/** Another worker takes over the run of a dead worker within the sum of both. */
const lockMs = 10_000;
const stalledCheckMs = 5000;
/** A job that keeps killing its process is dropped. */
const maxStalledRuns = 3;
const toleranceMs = 5000;
/** A failover may lose the schedule or its next job. */
const rescheduleMs = 30_000;
/** Each check costs three Redis commands. */
const checkIntervalMs = 5000;

export interface Schedule {
  /** Name of queue, schedule and job. */
  readonly name: string;
  /** Attempts per run, with exponential backoff. */
  readonly attempts: number;
  readonly firstRetryMs: number;
  readonly failure: string;
  /** A run of 20 s is a stall, and only the first of consecutive failures is logged as a warning. */
  readonly hasShortRuns?: boolean;
  readonly recovery?: string;
}

const retries = { attempts: 5, firstRetryMs: 30_000 };

export const schedules = {
  fit: { name: 'fit', ...retries, failure: 'the fit failed' },
  calibration: { name: 'calibration', ...retries, failure: 'the recalibration of intervals failed' },
  audit: { name: 'audit', ...retries, failure: 'the audit failed' },
  retention: {
    ...{ name: 'retention', attempts: 3, firstRetryMs: 60_000 },
    failure: 'cannot delete old answers yet',
  },
  /** Not retried: the next run continues. */
  journal: {
    ...{ name: 'journal', attempts: 1, firstRetryMs: 0, hasShortRuns: true },
    failure: 'cannot write the journal to ClickHouse; it is retried',
    recovery: 'the journal is written to ClickHouse again',
  },
  timeZones: { name: 'time-zones', ...retries, failure: 'cannot change a time zone yet; it is retried' },
  goals: {
    ...{ name: 'goals', attempts: 1, firstRetryMs: 0, hasShortRuns: true },
    failure: 'cannot check goals; goal alerts are delayed',
    recovery: 'goals are checked again',
  },
} satisfies Record<string, Schedule>;

export interface ScheduledRunsOptions {
  readonly redisUrl: string;
  /** 0: never. Use the same value in all processes: the last one to start decides. */
  readonly everyMs: number;
  readonly findBlockReason?: () => string | null;
  readonly run: (signal: AbortSignal) => Promise<unknown>;
  readonly logger: Logger;
}

/** close() aborts a run, which a later process repeats or continues. */
export function startScheduledRuns(schedule: Schedule, options: ScheduledRunsOptions): Consumer {
  const { name, attempts, firstRetryMs, failure, recovery, hasShortRuns = false } = schedule;
  const { redisUrl, everyMs, findBlockReason, logger } = options;
  const backoff = { type: 'exponential', delay: firstRetryMs };
  let runningRun: string | null = null;
  let isFailing = false;
  const run = async (signal: AbortSignal): Promise<void> => {
    const reason = findBlockReason?.() ?? null;
    if (reason !== null) throw new Error(`${name} skipped: ${reason}`);
    runningRun ??= `a run since ${Date.now()}`;
    await options.run(signal).finally(() => {
      runningRun = null;
    });
  };
  return startConsumer<object, unknown>({
    ...{ name: `the ${name} schedule`, redisUrl, logger, checkIntervalMs, enqueueMs: rescheduleMs },
    openQueue: (connection) => openQueue(name, connection, { attempts, backoff }),
    worker: { lockDuration: lockMs, stalledInterval: stalledCheckMs, maxStalledCount: maxStalledRuns },
    isDisabled: everyMs === 0,
    onEnqueueFailed: (error) => logger.error({ err: error }, `cannot schedule ${name}`),
    onJobFailed: (error, job) => {
      const level = isFailing && hasShortRuns ? 'debug' : 'warn';
      logger[level]({ err: error, attempt: job?.attemptsMade }, failure);
      isFailing = true;
    },
    handlers: ({ queue }) => ({
      processJob: (_job, _token, signal) => run(signal),
      enqueue: () => setSchedule(queue, everyMs),
      onCompleted: () => {
        if (isFailing && recovery !== undefined) logger.info(recovery);
        isFailing = false;
      },
      // Also removes the next run, which may be in a list that no worker reads.
      unblockJobs: () => queue.removeJobScheduler(name),
      describePending: async () =>
        hasShortRuns && runningRun !== null ? runningRun : findOverdueRun(queue, everyMs),
    }),
  });
}

/** No effect on an existing schedule. */
async function setSchedule(queue: Queue<object>, everyMs: number): Promise<void> {
  await queue.setGlobalConcurrency(1);
  if (everyMs === 0) await queue.removeJobScheduler(queue.name);
  else await queue.upsertJobScheduler(queue.name, { every: everyMs });
}

/**
 * @returns 'paused', even while a job runs; null if a job runs or the next run is on time; else its time.
 * Rejects if Redis is unavailable.
 */
async function findOverdueRun(queue: Queue<object>, everyMs: number): Promise<string | null> {
  if (everyMs === 0) return null;
  const scheduler = queue.getJobScheduler(queue.name);
  const [found, active, paused] = await Promise.all([scheduler, queue.getActiveCount(), queue.isPaused()]);
  // While paused, setting the schedule again still moves the next run.
  if (paused) return 'paused';
  const next = found?.next ?? 0;
  const isOnTime = next > Date.now() - toleranceMs && next < Date.now() + everyMs + toleranceMs;
  return active > 0 || isOnTime ? null : `${next}`;
}
