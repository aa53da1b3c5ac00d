/** The running pipeline of one process: sweep, queue and worker, and how they end. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { DrainShard } from '../services/pipeline/complete-block.js';
import type { Outbox } from '../store/outbox/outbox.js';
import type { Logger } from '../telemetry.js';
import { connectQueues } from './connection.js';
import { armShard, createDrainQueue, createDrainWorker } from './drain-queue.js';
import { createSweep } from './sweep.js';

const sweepMs = 500;
const hurriedSweepMs = 50;
/** How long close() waits for a running block before it gives the block up to a later attempt. */
const finishMs = 3000;
/** And then for BullMQ to put the job back, before the connections are cut and the lock runs out by itself. */
const releaseMs = 2000;

export interface PipelineOptions {
  redisUrl: string;
  partitions: number;
  outbox: Outbox;
  drain: DrainShard;
  /** Hears of every attempt that came to an end by itself, well or not. */
  onAttempt?: () => void;
  logger: Logger;
}

interface PipelineStats {
  rows: number;
  blocks: number;
  /** Failed attempts, each of which is repeated. */
  retries: number;
  /** Message of the last failed attempt, null after a success. */
  lastError: string | null;
}

export interface Pipeline {
  stats(): PipelineStats;
  /** Resolves when the outbox is empty, so everything committed before the call is in ClickHouse. */
  drained(): Promise<void>;
  /** Lets a running block finish or puts it back, within five seconds. May be called again. */
  close(): Promise<void>;
  /** As close(), without waiting for the running block: it is given up and repeated. */
  abandon(): Promise<void>;
}

/** @throws nothing when Redis or ClickHouse are away: the pipeline waits for them. */
export function startPipeline(options: PipelineOptions): Pipeline {
  const { redisUrl, partitions, outbox, drain, onAttempt, logger } = options;
  const totals = { rows: 0, blocks: 0, retries: 0, lastError: null as string | null };
  const abort = new AbortController();
  const stop = new AbortController();
  const connection = connectQueues(redisUrl, logger, () => stop.signal.aborted);
  const queue = createDrainQueue(connection);
  const worker = createDrainWorker(connection, partitions, drain, abort.signal);
  const arm = (shard: number) => armShard(queue, shard);
  const sweep = createSweep({ outbox, partitions, arm, now: () => performance.now() });
  /** Aborted to end the sweep's pause: after a block the next one may be due at once. */
  let lookAgain = new AbortController();
  let hurrying = 0;
  let closing: Promise<void> | undefined;

  queue.on('error', (error) => logger.debug({ err: error }, 'drain queue'));
  worker.on('error', (error) => logger.debug({ err: error }, 'drain worker'));
  worker.on('completed', (_job, { rows }) => {
    totals.rows += rows;
    totals.blocks += rows > 0 ? 1 : 0;
    totals.lastError = null;
    onAttempt?.();
    lookAgain.abort();
  });
  worker.on('failed', (job, error) => {
    totals.retries++;
    totals.lastError = error.message;
    if (stop.signal.aborted) return;
    onAttempt?.();
    logger.warn({ err: error, job: job?.id, attempt: job?.attemptsMade }, 'drain failed');
  });

  const sweeping = (async () => {
    while (!stop.signal.aborted) {
      lookAgain = new AbortController();
      await lookOnce();
      await pause(hurrying > 0 ? hurriedSweepMs : sweepMs, lookAgain.signal);
    }
  })();

  async function lookOnce(): Promise<number | null> {
    try {
      return await sweep.look(hurrying > 0);
    } catch (error) {
      if (!stop.signal.aborted) logger.debug({ err: error }, 'Redis is away: the outbox is looked at later');
      return null;
    }
  }

  async function drained(): Promise<void> {
    hurrying++;
    lookAgain.abort();
    try {
      while (!stop.signal.aborted) {
        if ((await lookOnce()) === 0) return;
        await sleep(hurriedSweepMs);
      }
    } finally {
      hurrying--;
    }
    throw new Error('the pipeline was closed before the outbox was empty');
  }

  /** @param patienceMs how long a running block may take to its end */
  async function close(patienceMs: number): Promise<void> {
    stop.abort();
    lookAgain.abort();
    // Without Redis no job can be put back: its lock runs out, and whoever finds it repeats it.
    const closed = worker.close(connection.status !== 'ready');
    await within(closed, patienceMs);
    abort.abort();
    await within(closed, releaseMs);
    // Whatever still waits for Redis fails now, so that the rest of closing comes to its end.
    connection.disconnect();
    await within(Promise.all([worker.disconnect(), queue.close(), closed, sweeping]), releaseMs);
  }

  return {
    stats: () => totals,
    drained,
    close: () => {
      closing ??= close(finishMs);
      return closing;
    },
    abandon: () => {
      closing ??= close(0);
      return closing;
    },
  };
}

/** Waits, or not longer than `ms`; the timer keeps nothing alive. */
export async function within(work: Promise<unknown>, ms: number): Promise<void> {
  const done = new AbortController();
  const finish = () => done.abort();
  work.then(finish, finish);
  await pause(ms, done.signal);
}

/** Sleeps until the time is over or the signal comes. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true });
  });
}
