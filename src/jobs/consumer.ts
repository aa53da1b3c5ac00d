import { type Job, type JobsOptions, Queue, Worker, type WorkerOptions } from 'bullmq';
import { Cluster, Redis } from 'ioredis';
import { singleFlight } from '../concurrency.js';
import { queuePrefix } from '../contracts/job-data.js';
import { parseRedisAddress } from '../contracts/redis-settings.js';
import { waitAtMost, withTimeout } from '../lifecycle.js';
import type { Logger } from '../logger.js';

/**
 * BullMQ needs commands that wait for a reconnect, and blocks for up to 10 s. A connection that is silent for
 * longer may be lost.
 */
const connectionOptions = { maxRetriesPerRequest: null, socketTimeout: 15_000 };
/** close() waits this long for aborted jobs, for BullMQ to requeue jobs, and for connections. */
const graceMs = 1000;
const releaseMs = 1000;
const disconnectMs = 500;

/**
 * The caller disconnects the connection.
 * @param isStopped true: do not reconnect, because BullMQ would wait for a last reply
 */
export function connectQueues(url: string, logger: Logger, stopped: () => boolean): Redis | Cluster {
  const retryStrategy = (attempt: number): number | null =>
    stopped() ? null : Math.min(50 * 2 ** attempt, 1000);
  const { nodes, login } = parseRedisAddress(url);
  const client =
    nodes.length > 1
      ? new Cluster([...nodes], {
          redisOptions: { ...connectionOptions, ...login },
          clusterRetryStrategy: retryStrategy,
          dnsLookup: (name, found) => found(null, name),
        })
      : new Redis(nodes[0] as string, { ...connectionOptions, retryStrategy });
  client.on('error', (error: Error) => logger.debug({ err: error }, 'connection of the queues'));
  return client;
}

export const openQueue = <Data>(
  name: string,
  connection: Redis | Cluster,
  retries: Pick<JobsOptions, 'attempts' | 'backoff'>,
): Queue<Data> =>
  new Queue<Data>(name, {
    connection,
    prefix: queuePrefix,
    streams: { events: { maxLen: 100 } },
    defaultJobOptions: { ...retries, removeOnComplete: true, removeOnFail: true, stackTraceLimit: 1 },
  });

/** A restart replaces queue and connection. */
export interface QueueAccess<Data> {
  readonly connection: Redis | Cluster;
  readonly queue: Queue<Data>;
  readonly stopping: AbortSignal;
  /** Call after each part of a long job. */
  readonly moved: () => void;
}

interface Handlers<Data, Result> {
  readonly work: (job: Job<Data, Result>, token: string, signal: AbortSignal) => Promise<Result>;
  /** Runs at each new connection and every `enqueueMs`. */
  readonly enqueue: () => Promise<unknown>;
  readonly completed?: (enqueue: () => unknown) => void;
  /** Runs after a restart, when a paused queue is already resumed. */
  readonly free: () => Promise<unknown>;
  /**
   * Changes with any progress; null without pending work. A rejection or a delay above 5 s counts as null.
   */
  readonly waiting: () => Promise<string | null>;
}

interface ConsumerOptions<Data, Result> {
  readonly name: string;
  readonly redisUrl: string;
  readonly logger: Logger;
  readonly openQueue: (connection: Redis | Cluster) => Queue<Data>;
  readonly worker: Partial<WorkerOptions>;
  readonly handlers: (access: QueueAccess<Data>) => Handlers<Data, Result>;
  readonly isOff?: boolean;
  readonly enqueueMs: number;
  readonly enqueueFailed: (error: unknown) => void;
  readonly failed: (error: Error, job: Job<Data, Result> | undefined) => void;
  readonly finishMs?: number;
  readonly watchMs?: number;
}

function openConsumer<Data, Result>(
  options: ConsumerOptions<Data, Result>,
  isRestart: boolean,
  moved: () => void,
) {
  const { redisUrl, logger, enqueueMs } = options;
  const [stop, abort] = [new AbortController(), new AbortController()];
  const stopping = stop.signal;
  const connection = connectQueues(redisUrl, logger, () => stopping.aborted);
  const queue = options.openQueue(connection);
  const { work, completed, free, waiting, ...handlers } = options.handlers({
    connection,
    queue,
    stopping,
    moved,
  });
  /** Rejects running jobs: BullMQ waits for them without a limit. */
  const inHand = new Set<(error: Error) => void>();
  const run = (job: Job<Data, Result>, token = ''): Promise<Result> =>
    new Promise((resolve, reject) => {
      inHand.add(reject);
      work(job, token, abort.signal)
        .finally(() => inHand.delete(reject))
        .then(resolve, reject);
    });
  const worker = new Worker<Data, Result>(queue.name, run, {
    connection,
    prefix: queuePrefix,
    autorun: false,
    ...options.worker,
  });
  const enqueueNow = (): Promise<unknown> =>
    handlers.enqueue().catch((error: unknown) => {
      if (!stopping.aborted) options.enqueueFailed(error);
    });
  const enqueue = singleFlight(enqueueNow);
  queue.on('error', (error) => logger.debug({ err: error }, `${queue.name} queue`));
  worker.on('error', (error) => logger.debug({ err: error }, `${queue.name} worker`));
  worker.on('completed', () => {
    moved();
    completed?.(enqueueNow);
  });
  worker.on('failed', (job, error) => {
    if (stopping.aborted) return;
    moved();
    options.failed(error, job);
  });
  connection.on('ready', enqueueNow);
  const timer = setInterval(enqueue, enqueueMs);

  async function resume(): Promise<void> {
    if (await queue.isPaused()) await queue.resume();
    await free();
  }
  async function begin(): Promise<void> {
    if (isRestart)
      await resume().catch((err: unknown) => {
        if (!stopping.aborted) logger.warn({ err }, `the jobs of ${queue.name} could not be freed`);
      });
    void enqueue();
    if (!options.isOff) await worker.run();
  }
  begin().catch((err: unknown) => logger.debug({ err }, `${queue.name} worker`));

  return {
    waiting,
    /** Aborts running jobs after `shutdownMs`, and finally rejects them. These jobs are repeated. */
    close: async (finishMs: number): Promise<void> => {
      stop.abort();
      clearInterval(timer);
      // Without Redis no job can be requeued. Its lock expires, and another worker repeats the job.
      const closed = worker.close(connection.status !== 'ready');
      await waitAtMost(closed, finishMs);
      abort.abort();
      await waitAtMost(closed, graceMs);
      for (const giveUp of inHand) giveUp(new Error('it did not end in time and was given up'));
      await waitAtMost(closed, releaseMs);
      connection.disconnect();
      await waitAtMost(Promise.all([worker.disconnect(), queue.close(), closed]), disconnectMs);
    },
  };
}

/**
 * Removes locks without expiry, and jobs that are not waiting or active (failed, delayed, in no list). They
 * would block later jobs with the same id.
 */
export async function freeJobs<Data>(
  { queue, connection }: Pick<QueueAccess<Data>, 'queue' | 'connection'>,
  ids: readonly string[],
): Promise<void> {
  for (const id of ids) {
    const lock = `${queue.toKey(id)}:lock`;
    const hasNoEnd = (await connection.pttl(lock)) === -1;
    if (hasNoEnd) await connection.del(lock);
    const state = await queue.getJobState(id);
    if (state !== 'active' && state !== 'waiting') await queue.remove(id);
  }
}

export type StallCounts = Readonly<Record<'stalls' | 'restarts', number>>;

export interface Consumer {
  stalled(): string | null;
  counts(): StallCounts;
  close(): Promise<void>;
}

/** A stall is reported within 30 s. */
const stallMs = 20_000;
const replyMs = 5000;

/**
 * Restarts the consumer with new connections if it makes no progress while work is pending. Counts checks
 * instead of time: a suspended machine is no stall.
 */
export function startConsumer<Data, Result>(options: ConsumerOptions<Data, Result>): Consumer {
  const { name, logger, finishMs = 0, watchMs = 1000 } = options;
  const maxLooks = stallMs / watchMs;
  const counts = { stalls: 0, restarts: 0 };
  let [looks, before] = [0, null as string | null];
  let restarting: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  const open = (isRestart: boolean) =>
    openConsumer(options, isRestart, () => {
      looks = 0;
    });
  const seconds = (): number => Math.round((looks * watchMs) / 1000);

  async function look(): Promise<void> {
    const now = await withTimeout(current.waiting(), replyMs).catch(() => null);
    looks = now === null || now !== before ? 0 : looks + 1;
    before = now;
    if (closing !== undefined || looks === 0 || looks % maxLooks !== 0) return;
    restarting = restart();
    await restarting;
  }

  async function restart(): Promise<void> {
    counts.stalls += looks === maxLooks ? 1 : 0;
    counts.restarts += 1;
    logger.error({ seconds: seconds() }, `${name} does not move with work waiting: it is restarted`);
    await current.close(0);
    current = open(true);
  }

  let current = open(false);
  const timer = setInterval(singleFlight(look), watchMs);
  return {
    stalled: () => (looks < maxLooks ? null : `${name} has not moved for ${seconds()} s with work waiting`),
    counts: () => counts,
    close: () => {
      clearInterval(timer);
      // A check may wait for Redis, and restarts nothing after close().
      closing ??= Promise.resolve(restarting).then(() => current.close(finishMs));
      return closing;
    },
  };
}
