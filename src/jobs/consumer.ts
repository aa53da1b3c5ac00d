/** A queue with its worker over connections of their own, which are replaced where the worker makes no progress. */
import { type Job, type JobsOptions, Queue, Worker, type WorkerOptions } from 'bullmq';
import { Cluster, Redis } from 'ioredis';
import { singleFlight } from '../concurrency.js';
import { queuePrefix } from '../contracts/jobs.js';
import { redisAddress } from '../contracts/redis.js';
import { inTime, within } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';

/**
 * BullMQ wants commands to wait for a reconnect; its workers block on the connection, for at most 10 s. A connection without
 * a reply for longer is replaced: a server may be gone without a word, and a Cluster node that hangs names no successor.
 */
const connectionOptions = { maxRetriesPerRequest: null, socketTimeout: 15_000 };
/** How long close() waits for jobs that have their signal, then for BullMQ to put them back, and for the connections. */
const graceMs = 1000;
const releaseMs = 1000;
const disconnectMs = 500;

/**
 * Connection for queues, which BullMQ duplicates where it blocks; whoever connects disconnects.
 *
 * @param stopped once true, a lost connection is not made again: BullMQ waits for a reply to its farewell
 * @param url one `redis://` or `rediss://` URL, or several of a Cluster's nodes separated by commas
 */
export function connectQueues(url: string, logger: Logger, stopped: () => boolean): Redis | Cluster {
  const retryStrategy = (attempt: number): number | null =>
    stopped() ? null : Math.min(50 * 2 ** attempt, 1000);
  const { nodes, login } = redisAddress(url);
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

export type Consumer<Data, Result> = ReturnType<typeof openConsumer<Data, Result>>;

interface ConsumerOptions<Data, Result> {
  readonly redisUrl: string;
  readonly logger: Logger;
  readonly openQueue: (connection: Redis | Cluster) => Queue<Data>;
  readonly work: (job: Job<Data, Result>, token: string, signal: AbortSignal) => Promise<Result>;
  readonly worker: Partial<WorkerOptions>;
}

/** @throws nothing while Redis is unavailable: everything waits for it */
export function openConsumer<Data, Result>(options: ConsumerOptions<Data, Result>) {
  const { redisUrl, logger, work } = options;
  const [stop, abort] = [new AbortController(), new AbortController()];
  const connection = connectQueues(redisUrl, logger, () => stop.signal.aborted);
  const queue = options.openQueue(connection);
  /** What gives up each job in hand. BullMQ waits for jobs without end. */
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
  queue.on('error', (error) => logger.debug({ err: error }, `${queue.name} queue`));
  worker.on('error', (error) => logger.debug({ err: error }, `${queue.name} worker`));
  return {
    connection,
    queue,
    worker,
    stopping: stop.signal,
    /**
     * Lets jobs in hand finish within `finishMs`, then gives them their signal, and soon gives them up: they count as failed,
     * or are found by their lock, and are repeated.
     */
    close: async (finishMs: number): Promise<void> => {
      stop.abort();
      // Without Redis no job can be put back: its lock runs out, and whoever finds it repeats it.
      const closed = worker.close(connection.status !== 'ready');
      await within(closed, finishMs);
      abort.abort();
      await within(closed, graceMs);
      for (const giveUp of inHand) giveUp(new Error('it did not end in time and was given up'));
      await within(closed, releaseMs);
      // Whatever still waits for Redis fails now.
      connection.disconnect();
      await within(Promise.all([worker.disconnect(), queue.close(), closed]), disconnectMs);
    },
  };
}

/**
 * Removes what keeps jobs from running: a paused queue, a lock that never ends, and a job in a state in which no worker looks
 * for it (failed, far ahead, in no list), which would swallow every later one of its id. A job that waits or runs stays.
 */
async function freeJobs<Data, Result>(
  { queue, connection }: Pick<Consumer<Data, Result>, 'queue' | 'connection'>,
  ids: readonly string[],
): Promise<void> {
  if (ids.length > 0 && (await queue.isPaused())) await queue.resume();
  for (const id of ids) {
    const lock = `${queue.toKey(id)}:lock`;
    const hasNoEnd = (await connection.pttl(lock)) === -1;
    if (hasNoEnd) await connection.del(lock);
    const state = await queue.getJobState(id);
    if (state !== 'active' && state !== 'waiting') await queue.remove(id);
  }
}

/** Starts the worker when its jobs are freed (`freeJobs`), and all the same where they cannot be. @param ids of the jobs */
export function runWorker<Data, Result>(
  consumer: Pick<Consumer<Data, Result>, 'queue' | 'connection' | 'worker' | 'stopping'>,
  ids: Promise<readonly string[]>,
  logger: Logger,
): void {
  const { queue, worker, stopping } = consumer;
  const freed = ids.then((some) => freeJobs(consumer, some));
  freed
    .catch((err: unknown) => {
      if (!stopping.aborted) logger.warn({ err }, `the jobs of ${queue.name} could not be freed`);
    })
    .then(() => worker.run())
    .catch((err: unknown) => logger.debug({ err }, `${queue.name} worker`));
}

export type WatchedConsumer = ReturnType<typeof startWatched>;

interface WatchOptions<Watched> {
  /** As logs name it: "the pipeline". */
  readonly name: string;
  /** @param ended to be called when a job ended, also with an error */
  readonly start: (isRestart: boolean, ended: () => void) => Watched;
  /**
   * What waits, as a text that changes whenever something moves; null where nothing waits. Where it rejects, or does not
   * answer within 5 s, nothing can move either, which is no stall.
   */
  readonly waiting: (watched: Watched) => Promise<string | null>;
  readonly logger: Logger;
  /** How long jobs in hand may take when the process stops. */
  readonly finishMs?: number;
  readonly lookMs?: number;
}

/** Since the start. */
export type StallCounts = Readonly<Record<'stalls' | 'restarts', number>>;

/** Looks without a change for so long are a stall: it is reported within 30 s. */
const stallMs = 20_000;
const replyMs = 5000;

/**
 * Starts a consumer and looks again and again whether it moves while work waits. One that does not is restarted with new
 * connections, until something moves. Looks are counted, not time: a machine that stood still makes no stall.
 */
export function startWatched<Watched extends Pick<Consumer<never, never>, 'close'>>({
  name,
  start,
  waiting,
  logger,
  finishMs = 0,
  lookMs = 1000,
}: WatchOptions<Watched>) {
  const maxLooks = stallMs / lookMs;
  const counts = { stalls: 0, restarts: 0 };
  let [looks, before] = [0, null as string | null];
  let restarting: Promise<void> | undefined;
  let closing: Promise<void> | undefined;
  const ended = (): void => {
    looks = 0;
  };
  const seconds = (): number => Math.round((looks * lookMs) / 1000);

  async function look(): Promise<void> {
    const now = await inTime(waiting(current), replyMs).catch(() => null);
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
    current = start(true, ended);
  }

  let current = start(false, ended);
  const timer = setInterval(singleFlight(look), lookMs);
  return {
    /** Why this has to be looked at, or null. */
    stalled: (): string | null =>
      looks < maxLooks ? null : `${name} has not moved for ${seconds()} s with work waiting`,
    counts: (): StallCounts => counts,
    close: (): Promise<void> => {
      clearInterval(timer);
      // A look may wait for Redis for longer than a stop may take, and starts nothing any more.
      closing ??= Promise.resolve(restarting).then(() => current.close(finishMs));
      return closing;
    },
  };
}
