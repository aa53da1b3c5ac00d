/** The schedule of a job: what it says, how it is set, and how it is freed. */
import { Queue } from 'bullmq';
import { queuePrefix, type ScheduledJobData } from '../contracts/jobs.js';
import type { Logger } from '../telemetry.js';
import { connectQueues } from './connection.js';
import { within } from './worker.js';

export interface ScheduledJobOptions {
  redisUrl: string;
  /** Of the queue, also the schedule's and the job's. */
  name: string;
  /** 0: never. All processes set the same; with different ones the last one to start decides. */
  everyMs: number;
  /** A run that fails is made again so often in all, with growing pauses from the given one on. */
  attempts: number;
  firstRetryMs: number;
  /** A run that takes longer gets its signal, and is given up where it does not end then; absent: it may take for ever. */
  limitMs?: number;
  /** The signal comes when the process stops, or the time is up. */
  run(signal: AbortSignal): Promise<void>;
  /** Hears of every run that failed before the process stops. */
  failed(error: Error, attempt: number | undefined): void;
  logger: Logger;
}

/** How long Redis may take to free a schedule, and its connection to end. */
const tellMs = 5000;
const disconnectMs = 500;

/** Makes a schedule anew that does not come to its runs: paused, or with its next run where nobody finds it. */
export async function freeSchedule({ redisUrl, name, logger }: ScheduledJobOptions): Promise<void> {
  let done = false;
  const connection = connectQueues(redisUrl, logger, () => done);
  const queue = new Queue(name, { connection, prefix: queuePrefix });
  queue.on('error', (error) => logger.debug({ err: error }, `${name} queue`));
  const free = async (): Promise<void> => {
    if (await queue.isPaused()) await queue.resume();
    await queue.removeJobScheduler(name);
  };
  await within(free(), tellMs);
  done = true;
  connection.disconnect();
  await within(queue.close(), disconnectMs);
}

/** Does nothing where it is set already. */
export async function setSchedule(
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
