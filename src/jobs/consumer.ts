import { type Job, type JobsOptions, Queue, Worker, type WorkerOptions } from 'bullmq';
import { Cluster, Redis } from 'ioredis';
import { singleFlight } from '../concurrency.js';
import { queuePrefix } from '../contracts/outbox/job-data.js';
import { parseRedisAddress } from '../contracts/settings/redis-settings.js';
import { waitAtMost, withTimeout } from '../lifecycle.js';
import type { Logger } from '../logger.js';

/**
 * BullMQ needs commands that wait for a reconnect, and blocks for up to 10 s. A connection that is silent for
 * longer is replaced: its server may have vanished without closing it.
 */
const connectionOptions = { maxRetriesPerRequest: null, socketTimeout: 15_000 };
/** close() waits this long for aborted jobs, for BullMQ to requeue jobs, and for connections. */
const abortGraceMs = 1000;
const workerCloseMs = 1000;
const disconnectMs = 500;

/**
 * The caller disconnects the connection.
 * @param isStopped true: do not reconnect, because BullMQ would wait for a last reply
 */
export function connectQueue(url: string, logger: Logger, isStopped: () => boolean): Redis | Cluster {
  const retryStrategy = (attempt: number): number | null =>
    isStopped() ? null : Math.min(50 * 2 ** attempt, 1000);
  const { nodes, login } = parseRedisAddress(url);
  const client =
    nodes.length > 1
      ? new Cluster([...nodes], {
          redisOptions: { ...connectionOptions, ...login },
          clusterRetryStrategy: retryStrategy,
          dnsLookup: (name, found) => found(null, name),
        })
      : new Redis(nodes[0] as string, { ...connectionOptions, retryStrategy });
  client.on('error', (error: Error) => logger.debug({ err: error }, 'queue connection'));
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
  /** Aborts at close(), before the signal of running jobs does. */
  readonly stopping: AbortSignal;
  /** Call after each part of a long job. */
  readonly reportActivity: () => void;
}

interface Handlers<Data, Result> {
  readonly processJob: (job: Job<Data, Result>, token: string, signal: AbortSignal) => Promise<Result>;
  /** Runs at each new connection and every `enqueueMs`. */
  readonly enqueue: () => Promise<unknown>;
  readonly onCompleted?: (enqueue: () => unknown) => void;
  /** Runs after a restart, when a paused queue is already resumed. */
  readonly unblockJobs: () => Promise<unknown>;
  /**
   * Changes with any progress; null without pending work. A rejection or a delay above 5 s counts as null.
   */
  readonly describePending: () => Promise<string | null>;
}

interface ConsumerOptions<Data, Result> {
  readonly name: string;
  readonly redisUrl: string;
  readonly logger: Logger;
  readonly openQueue: (connection: Redis | Cluster) => Queue<Data>;
  readonly worker: Partial<WorkerOptions>;
  readonly handlers: (access: QueueAccess<Data>) => Handlers<Data, Result>;
  readonly isDisabled?: boolean;
  readonly enqueueMs: number;
  readonly onEnqueueFailed: (error: unknown) => void;
  readonly onJobFailed: (error: Error, job: Job<Data, Result> | undefined) => void;
  readonly shutdownMs?: number;
  readonly checkIntervalMs?: number;
}

function openConsumer<Data, Result>(
  options: ConsumerOptions<Data, Result>,
  isRestart: boolean,
  reportActivity: () => void,
) {
  const { redisUrl, logger, enqueueMs } = options;
  const [stop, abort] = [new AbortController(), new AbortController()];
  const stopping = stop.signal;
  const connection = connectQueue(redisUrl, logger, () => stopping.aborted);
  const queue = options.openQueue(connection);
  const { processJob, onCompleted, unblockJobs, describePending, ...handlers } = options.handlers({
    connection,
    queue,
    stopping,
    reportActivity,
  });
  /** Rejects running jobs: BullMQ waits for them without a limit. */
  const runningJobs = new Set<(error: Error) => void>();
  const run = (job: Job<Data, Result>, token = ''): Promise<Result> =>
    new Promise((resolve, reject) => {
      runningJobs.add(reject);
      processJob(job, token, abort.signal)
        .finally(() => runningJobs.delete(reject))
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
      if (!stopping.aborted) options.onEnqueueFailed(error);
    });
  const enqueue = singleFlight(enqueueNow);
  queue.on('error', (error) => logger.debug({ err: error }, `${queue.name} queue`));
  worker.on('error', (error) => logger.debug({ err: error }, `${queue.name} worker`));
  worker.on('completed', () => {
    reportActivity();
    onCompleted?.(enqueueNow);
  });
  worker.on('failed', (job, error) => {
    if (stopping.aborted) return;
    reportActivity();
    options.onJobFailed(error, job);
  });
  connection.on('ready', enqueueNow);
  const timer = setInterval(enqueue, enqueueMs);

  async function resume(): Promise<void> {
    if (await queue.isPaused()) await queue.resume();
    await unblockJobs();
  }
  async function start(): Promise<void> {
    if (isRestart)
      await resume().catch((err: unknown) => {
        if (!stopping.aborted) logger.warn({ err }, `cannot unblock the jobs of ${queue.name}`);
      });
    void enqueue();
    if (!options.isDisabled) await worker.run();
  }
  start().catch((err: unknown) => logger.debug({ err }, `${queue.name} worker`));

  return {
    describePending,
    /** Aborts running jobs after `shutdownMs`, and finally rejects them. These jobs are repeated. */
    close: async (shutdownMs: number): Promise<void> => {
      stop.abort();
      clearInterval(timer);
      // Without Redis no job can be requeued. Its lock expires, and another worker repeats the job.
      const closed = worker.close(connection.status !== 'ready');
      await waitAtMost(closed, shutdownMs);
      abort.abort();
      await waitAtMost(closed, abortGraceMs);
      for (const rejectJob of runningJobs)
        rejectJob(new Error('the job did not end within the shutdown time'));
      await waitAtMost(closed, workerCloseMs);
      connection.disconnect();
      await waitAtMost(Promise.all([worker.disconnect(), queue.close(), closed]), disconnectMs);
    },
  };
}

/**
 * Removes locks without expiry, and jobs that are not waiting or active (failed, delayed, in no list). They
 * would block later jobs with the same id.
 */
export async function unblockJobs<Data>(
  { queue, connection }: Pick<QueueAccess<Data>, 'queue' | 'connection'>,
  ids: readonly string[],
): Promise<void> {
  for (const id of ids) {
    const lock = `${queue.toKey(id)}:lock`;
    const isPermanent = (await connection.pttl(lock)) === -1;
    if (isPermanent) await connection.del(lock);
    const state = await queue.getJobState(id);
    if (state !== 'active' && state !== 'waiting') await queue.remove(id);
  }
}

export type StallCounts = Readonly<Record<'stalls' | 'restarts', number>>;

export interface Consumer {
  getStallReason(): string | null;
  getCounts(): StallCounts;
  close(): Promise<void>;
}

/** A stall is reported within 30 s. */
const stallMs = 20_000;
const replyTimeoutMs = 5000;

/**
 * Restarts the consumer with new connections if it makes no progress while work is pending. Counts checks
 * instead of time: a suspended machine is no stall.
 */
export function startConsumer<Data, Result>(options: ConsumerOptions<Data, Result>): Consumer {
  const { name, logger, shutdownMs = 0, checkIntervalMs = 1000 } = options;
  const maxIdleChecks = stallMs / checkIntervalMs;
  const counts = { stalls: 0, restarts: 0 };
  let [idleChecks, lastPending] = [0, null as string | null];
  let restarting: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  const open = (isRestart: boolean) =>
    openConsumer(options, isRestart, () => {
      idleChecks = 0;
    });
  const seconds = (): number => Math.round((idleChecks * checkIntervalMs) / 1000);

  async function checkProgress(): Promise<void> {
    const pending = await withTimeout(current.describePending(), replyTimeoutMs).catch(() => null);
    idleChecks = pending === null || pending !== lastPending ? 0 : idleChecks + 1;
    lastPending = pending;
    if (closing !== undefined || idleChecks === 0 || idleChecks % maxIdleChecks !== 0) return;
    restarting = restart();
    await restarting;
  }

  async function restart(): Promise<void> {
    counts.stalls += idleChecks === maxIdleChecks ? 1 : 0;
    counts.restarts += 1;
    logger.error(
      { seconds: seconds() },
      `${name} makes no progress although work is pending; it is restarted`,
    );
    await current.close(0);
    current = open(true);
  }

  let current = open(false);
  const timer = setInterval(singleFlight(checkProgress), checkIntervalMs);
  return {
    getStallReason: () =>
      idleChecks < maxIdleChecks
        ? null
        : `${name} made no progress for ${seconds()} s although work is pending`,
    getCounts: () => counts,
    close: () => {
      clearInterval(timer);
      // A check may wait for Redis, and restarts nothing after close().
      closing ??= Promise.resolve(restarting).then(() => current.close(shutdownMs));
      return closing;
    },
  };
}
