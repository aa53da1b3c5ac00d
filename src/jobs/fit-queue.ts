/** The BullMQ side of fits: a job every so often, of which one runs at a time, wherever. */
import { Queue, Worker } from 'bullmq';
import { type FitJobData, fitQueueName, queuePrefix } from '../contracts/jobs.js';
import type { Logger } from '../telemetry.js';
import { connectQueues } from './connection.js';
import { within } from './worker.js';

const schedulerId = 'fit';
const hourMs = 3_600_000;
/** A dead worker's job is found within these two together; the run is then made again, which does no harm. */
const lockMs = 10_000;
const stalledCheckMs = 5000;
/** A job that ends its process again and again is given up: the next one comes with the schedule. */
const maxStalled = 3;
const attempts = 5;
const firstRetryMs = 30_000;
/** How long close() waits for the aborted run and for BullMQ to put its job back, then for the connections. */
const finishMs = 2000;
const disconnectMs = 500;

export interface ScheduledFitsOptions {
  redisUrl: string;
  /** 0: none. */
  intervalHours: number;
  run(signal: AbortSignal): Promise<void>;
  logger: Logger;
}

export interface ScheduledFits {
  /** Aborts a run, which a later process repeats. */
  close(): Promise<void>;
}

/** @throws nothing while Redis is away: everything waits for it */
export function startScheduledFits({
  redisUrl,
  intervalHours,
  run,
  logger,
}: ScheduledFitsOptions): ScheduledFits {
  const stop = new AbortController();
  const connection = connectQueues(redisUrl, logger, () => stop.signal.aborted);
  const queue = new Queue<FitJobData>(fitQueueName, {
    connection,
    prefix: queuePrefix,
    streams: { events: { maxLen: 100 } },
  });
  const worker = intervalHours === 0 ? null : createFitWorker();
  queue.on('error', (error) => logger.debug({ err: error }, 'fit queue'));
  const scheduled = schedule(queue, intervalHours).catch((error: unknown) => {
    if (!stop.signal.aborted) logger.error({ err: error }, 'fits are not scheduled');
  });

  function createFitWorker(): Worker<FitJobData> {
    const created = new Worker<FitJobData>(
      fitQueueName,
      async ({ data }) => {
        if (data.v !== 1)
          throw new Error(`fit job of version ${String(data.v)}: this process knows version 1`);
        await run(stop.signal);
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
    created.on('error', (error) => logger.debug({ err: error }, 'fit worker'));
    created.on('failed', (job, error) => {
      if (!stop.signal.aborted) logger.warn({ err: error, attempt: job?.attemptsMade }, 'a fit failed');
    });
    return created;
  }

  async function close(): Promise<void> {
    stop.abort();
    const closed = worker?.close(connection.status !== 'ready') ?? Promise.resolve();
    await within(closed, finishMs);
    // Whatever still waits for Redis fails now; a job that could not be put back is found by its lock.
    connection.disconnect();
    await within(Promise.all([worker?.disconnect(), queue.close(), closed, scheduled]), disconnectMs);
  }

  let closing: Promise<void> | undefined;
  return {
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

/** All processes set the same; with different settings the last one to start decides. */
async function schedule(queue: Queue<FitJobData>, intervalHours: number): Promise<void> {
  await queue.setGlobalConcurrency(1);
  if (intervalHours === 0) {
    await queue.removeJobScheduler(schedulerId);
    return;
  }
  await queue.upsertJobScheduler(
    schedulerId,
    { every: Math.round(intervalHours * hourMs) },
    {
      name: 'fit',
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
