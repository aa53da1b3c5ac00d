/** Work that comes every so often, of which one run goes on at a time, wherever. */
import type { Queue } from 'bullmq';
import type { Logger } from '../telemetry.js';
import { type Consumer, openQueue, startConsumer } from './consumer.js';

/** The job of a dead worker is found within these two together; the run is then repeated, which does no harm. */
const lockMs = 10_000;
const stalledCheckMs = 5000;
/** A job that ends its process again and again is given up: the next one comes with the schedule. */
const maxStalled = 3;
/** How far the next run may be off its time. */
const slackMs = 5000;
/** A Redis that took over may know of no schedule, or have lost its next job. Setting one that is there does nothing. */
const rescheduleMs = 30_000;
/** Asking costs Redis three commands. */
const watchMs = 5000;

export interface Schedule {
  /** Of the queue, also the schedule's and the job's. */
  readonly name: string;
  /** A run that fails is repeated so often in all, with growing pauses from the given one on. */
  readonly attempts: number;
  readonly firstRetryMs: number;
  readonly failure: string;
  /** Runs end within seconds: one that goes on for 20 s is a stall, and of failures in a row only the first is a warning. */
  readonly areShort?: boolean;
  readonly recovery?: string;
}

const retries = { attempts: 5, firstRetryMs: 30_000 };

export const schedules = {
  fit: { name: 'fit', ...retries, failure: 'a fit failed' },
  audit: { name: 'audit', ...retries, failure: 'an audit could not compare anything' },
  retention: {
    ...{ name: 'retention', attempts: 3, firstRetryMs: 60_000 },
    failure: 'old answers could not be dropped yet',
  },
  /** A run that failed is not repeated: the next one takes up what it left. */
  journal: {
    ...{ name: 'journal', attempts: 1, firstRetryMs: 0, areShort: true },
    failure: 'the journal waits: it does not reach ClickHouse',
    recovery: 'the journal reaches ClickHouse again',
  },
  goals: {
    ...{ name: 'goals', attempts: 1, firstRetryMs: 0, areShort: true },
    failure: 'goals are not checked: their alerts wait',
    recovery: 'goals are checked again',
  },
} satisfies Record<string, Schedule>;

export interface ScheduledRunsOptions {
  readonly redisUrl: string;
  /** 0: never. All processes set the same; with different ones the last one to start decides. */
  readonly everyMs: number;
  /** Why there can be no run now, or null. */
  readonly blocked?: () => string | null;
  /** The signal comes when the process stops. */
  readonly run: (signal: AbortSignal) => Promise<unknown>;
  readonly logger: Logger;
}

/** Closing gives a run its signal; a later process repeats it or goes on. @throws nothing while Redis is unavailable */
export function startScheduledRuns(schedule: Schedule, options: ScheduledRunsOptions): Consumer {
  const { name, attempts, firstRetryMs, failure, recovery, areShort = false } = schedule;
  const { redisUrl, everyMs, blocked, logger } = options;
  const backoff = { type: 'exponential', delay: firstRetryMs };
  /** A run that has not ended, until one ends. */
  let open: string | null = null;
  let isFailing = false;
  const run = async (signal: AbortSignal): Promise<void> => {
    const reason = blocked?.() ?? null;
    if (reason !== null) throw new Error(`no ${name}: ${reason}`);
    open ??= `a run since ${Date.now()}`;
    await options.run(signal).finally(() => {
      open = null;
    });
  };
  return startConsumer<object, unknown>({
    ...{ name: `the schedule of ${name}`, redisUrl, logger, watchMs, enqueueMs: rescheduleMs },
    openQueue: (connection) => openQueue(name, connection, { attempts, backoff }),
    worker: { lockDuration: lockMs, stalledInterval: stalledCheckMs, maxStalledCount: maxStalled },
    isOff: everyMs === 0,
    enqueueFailed: (error) => logger.error({ err: error }, `runs of ${name} are not scheduled`),
    failed: (error, job) => {
      const level = isFailing && areShort ? 'debug' : 'warn';
      logger[level]({ err: error, attempt: job?.attemptsMade }, failure);
      isFailing = true;
    },
    handlers: ({ queue }) => ({
      work: (_job, _token, signal) => run(signal),
      enqueue: () => setSchedule(queue, everyMs),
      completed: () => {
        if (isFailing && recovery !== undefined) logger.info(recovery);
        isFailing = false;
      },
      // With its next run, which may be where no worker finds it.
      free: () => queue.removeJobScheduler(name),
      waiting: async () => (areShort && open !== null ? open : overdue(queue, everyMs)),
    }),
  });
}

/** Does nothing where it is set already. Its jobs have the queue's options. */
async function setSchedule(queue: Queue<object>, everyMs: number): Promise<void> {
  await queue.setGlobalConcurrency(1);
  if (everyMs === 0) await queue.removeJobScheduler(queue.name);
  else await queue.upsertJobScheduler(queue.name, { every: everyMs });
}

/**
 * Null while all is well; else what is wrong with the schedule, where nobody runs the job although its time has come, or its
 * time lies further ahead than the schedule allows. Rejects where Redis does not answer.
 */
async function overdue(queue: Queue<object>, everyMs: number): Promise<string | null> {
  if (everyMs === 0) return null;
  const scheduler = queue.getJobScheduler(queue.name);
  const [found, active, paused] = await Promise.all([scheduler, queue.getActiveCount(), queue.isPaused()]);
  // Setting the schedule again moves the next run, also of a queue that gives out none.
  if (paused) return 'paused';
  const next = found?.next ?? 0;
  const isInTime = next > Date.now() - slackMs && next < Date.now() + everyMs + slackMs;
  return active > 0 || isInTime ? null : `${next}`;
}
