/** A job every so often, of which one runs at a time, wherever. */
import { Queue, Worker } from 'bullmq';
import { queuePrefix, type ScheduledJobData } from '../contracts/jobs.js';
import type { Logger } from '../telemetry.js';
import { connectQueues } from './connection.js';
import { within } from './worker.js';

/** A dead worker's job is found within these two together; the run is then made again, which does no harm. */
const lockMs = 10_000;
const stalledCheckMs = 5000;
/** A job that ends its process again and again is given up: the next one comes with the schedule. */
const maxStalled = 3;
/** How long close() waits for the run at hand and for BullMQ to put its job back, then for the connections. */
const finishMs = 2000;
const disconnectMs = 500;
/** A Redis that took over may know of no schedule, or have lost its next job. Setting one again that is there does nothing. */
const rescheduleMs = 30_000;

export interface ScheduledJobOptions {
  redisUrl: string;
  /** Of the queue, also the schedule's and the job's. */
  name: string;
  /** 0: never. All processes set the same; with different ones the last one to start decides. */
  everyMs: number;
  /** A run that fails is made again so often in all, with growing pauses from the given one on. */
  attempts: number;
  firstRetryMs: number;
  /** The signal comes when the process stops. */
  run(signal: AbortSignal): Promise<void>;
  /** Hears of every run that failed before the process stops. */
  failed(error: Error, attempt: number | undefined): void;
  logger: Logger;
}

export interface ScheduledJob {
  /** Gives the run its signal and waits for it; one that does not end is repeated by a later process. */
  close(): Promise<void>;
}

/** @throws nothing while Redis is away: everything waits for it */
export function startScheduledJob(options: ScheduledJobOptions): ScheduledJob {
  const { name, everyMs, logger } = options;
  const stop = new AbortController();
  const connection = connectQueues(options.redisUrl, logger, () => stop.signal.aborted);
  const queue = new Queue<ScheduledJobData>(name, {
    connection,
    prefix: queuePrefix,
    streams: { events: { maxLen: 100 } },
  });
  const worker = everyMs === 0 ? null : createWorker();
  queue.on('error', (error) => logger.debug({ err: error }, `${name} queue`));
  let scheduling = Promise.resolve();
  let due = false;
  // One that is wanted while another is under way follows it: Redis may have been replaced between its steps.
  const setSchedule = (): void => {
    if (due) return;
    due = true;
    scheduling = scheduling.then(setDueSchedule).catch((error: unknown) => {
      if (!stop.signal.aborted) logger.error({ err: error }, `runs of ${name} are not scheduled`);
    });
  };
  const setDueSchedule = async (): Promise<void> => {
    due = false;
    if (!stop.signal.aborted) await schedule(queue, options);
  };
  connection.on('ready', setSchedule);
  const again = setInterval(setSchedule, rescheduleMs);

  function createWorker(): Worker<ScheduledJobData> {
    const created = new Worker<ScheduledJobData>(
      name,
      async ({ data }) => {
        if (data.v !== 1)
          throw new Error(`${name} job of version ${String(data.v)}: this process knows version 1`);
        await options.run(stop.signal);
      },
      {
        connection,
        prefix: queuePrefix,
        concurrency: 1,
        lockDuration: lockMs,
        stalledInterval: stalledCheckMs,
        maxStalledCount: maxStalled,
      },
    );
    created.on('error', (error) => logger.debug({ err: error }, `${name} worker`));
    created.on('failed', (job, error) => {
      if (!stop.signal.aborted) options.failed(error, job?.attemptsMade);
    });
    return created;
  }

  async function close(): Promise<void> {
    stop.abort();
    clearInterval(again);
    const closed = worker?.close(connection.status !== 'ready') ?? Promise.resolve();
    await within(closed, finishMs);
    // Whatever still waits for Redis fails now; a job that could not be put back is found by its lock.
    connection.disconnect();
    await within(Promise.all([worker?.disconnect(), queue.close(), closed, scheduling]), disconnectMs);
  }

  let closing: Promise<void> | undefined;
  return {
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

async function schedule(
  queue: Queue<ScheduledJobData>,
  { name, everyMs, attempts, firstRetryMs }: ScheduledJobOptions,
): Promise<void> {
  await queue.setGlobalConcurrency(1);
  if (everyMs === 0) {
    await queue.removeJobScheduler(name);
    return;
  }
  await queue.upsertJobScheduler(
    name,
    { every: everyMs },
    {
      name,
      data: { v: 1 },
      opts: {
        attempts,
        backoff: { type: 'exponential', delay: firstRetryMs },
        removeOnComplete: true,
        removeOnFail: true,
        stackTraceLimit: 1,
      },
    },
  );
}
