/** The queue, worker and schedule of a job that comes every so often, of which one runs at a time, wherever. */
import { once } from 'node:events';
import { Queue, Worker } from 'bullmq';
import { queuePrefix, type ScheduledJobData } from '../contracts/jobs.js';
import { connectQueues } from './connection.js';
import { type ScheduledJobOptions, setSchedule } from './schedule.js';
import { within } from './worker.js';

/** A dead worker's job is found within these two together; the run is then made again, which does no harm. */
const lockMs = 10_000;
const stalledCheckMs = 5000;
/** A job that ends its process again and again is given up: the next one comes with the schedule. */
const maxStalled = 3;
/** How long close() waits for the run at hand and for BullMQ to put its job back, then for the connections. */
const finishMs = 2000;
const disconnectMs = 500;
/** What a run that got its signal still gets. */
const graceMs = 5000;
/** How long Redis may take to tell of a schedule, and how far its next run may be off its time. */
const tellMs = 5000;
const slackMs = 5000;
/** A Redis that took over may know of no schedule, or have lost its next job. Setting one again that is there does nothing. */
const rescheduleMs = 30_000;

export interface ScheduledRuns {
  /**
   * Null while all is well; else what is wrong with the schedule, where nobody runs the job although its time has come,
   * or its time lies further ahead than the schedule allows. Rejects where Redis does not tell.
   */
  overdue(): Promise<string | null>;
  /** Gives the run its signal and waits for it; one that does not end is repeated by a later process. */
  close(): Promise<void>;
}

export interface RunsHooks {
  /** Hears of every run that came to its end by itself, well or not. */
  ended(): void;
  /** Hears of a run that was given up. */
  givenUp(): void;
}

/** @throws nothing while Redis is away: everything waits for it */
export function startRuns(options: ScheduledJobOptions, hooks: RunsHooks): ScheduledRuns {
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
  const wantSchedule = (): void => {
    if (due) return;
    due = true;
    scheduling = scheduling.then(setDueSchedule).catch((error: unknown) => {
      if (!stop.signal.aborted) logger.error({ err: error }, `runs of ${name} are not scheduled`);
    });
  };
  const setDueSchedule = async (): Promise<void> => {
    due = false;
    if (!stop.signal.aborted) await setSchedule(queue, options);
  };
  connection.on('ready', wantSchedule);
  const again = setInterval(wantSchedule, rescheduleMs);

  function createWorker(): Worker<ScheduledJobData> {
    const created = new Worker<ScheduledJobData>(
      name,
      async ({ data }) => {
        if (data.v !== 1)
          throw new Error(`${name} job of version ${String(data.v)}: this process knows version 1`);
        await runOnce();
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

  async function runOnce(): Promise<void> {
    const { limitMs } = options;
    if (limitMs === undefined) return options.run(stop.signal).finally(hooks.ended);
    const timeUp = new AbortController();
    const gaveUp = new AbortController();
    const soft = setTimeout(() => timeUp.abort(), limitMs);
    const hard = setTimeout(() => gaveUp.abort(), limitMs + graceMs);
    const run = options.run(AbortSignal.any([stop.signal, timeUp.signal])).finally(hooks.ended);
    try {
      await orAborted(run, gaveUp.signal);
    } catch (error) {
      if (gaveUp.signal.aborted) hooks.givenUp();
      throw error;
    } finally {
      clearTimeout(soft);
      clearTimeout(hard);
    }
  }

  async function overdue(): Promise<string | null> {
    if (everyMs === 0) return null;
    const asked = Promise.all([queue.getJobScheduler(name), queue.getActiveCount(), queue.isPaused()]);
    const [found, active, paused] = await orAborted(asked, AbortSignal.timeout(tellMs));
    // Setting the schedule again moves the next run, also of a queue that gives out none.
    if (paused) return 'paused';
    const next = found?.next ?? 0;
    const isInTime = next > Date.now() - slackMs && next < Date.now() + everyMs + slackMs;
    return active > 0 || isInTime ? null : `${next}`;
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
    overdue,
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

/** @throws Error once the signal comes, whatever becomes of the work */
async function orAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  // Whoever gave it up does not hear of it any more.
  work.catch(() => undefined);
  const aborted = once(signal, 'abort').then(() => Promise.reject(new Error('it did not end in time')));
  return Promise.race([work, aborted]);
}
