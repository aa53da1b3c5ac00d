/** One job per shard (group of partitions), added again while rows are pending, retried until it succeeds. */
import type { Job, Queue } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import {
  type DrainJobData,
  drainJobId,
  drainQueueName,
  type PinnedBlock,
  shardCount,
} from '../contracts/outbox/job-data.js';
import { computeSum, indices } from '../lists.js';
import type { Logger } from '../logger.js';
import type { DrainBlock, DrainResult } from '../services/outbox/complete-block.js';
import { endSpanAfter, type StartSpan } from '../spans.js';
import type { Outbox } from '../store/outbox/outbox.js';
import { type Consumer, openQueue, type QueueAccess, startConsumer, unblockJobs } from './consumer.js';

/** Another worker takes over the job of a dead worker within 8 s. */
const lockMs = 5000;
const stalledCheckMs = 3000;
/** A failed job would block all later jobs with its id. */
const unlimited = Number.MAX_SAFE_INTEGER;
const minRetryMs = 250;
const maxRetryMs = 5000;
const sweepMs = 500;
const shutdownMs = 3000;

/** Interval between jobs of a shard. Short, so that single answers soon become visible. */
const enqueueIntervalMs = 900;
/** Under load, longer pauses make larger blocks, which cost ClickHouse little more. */
const busyRows = 200;
const busyIntervalMs = 2000;
const immediateRows = 20_000;

type DrainJob = Job<DrainJobData, DrainResult>;

export interface DrainJobsOptions {
  readonly redisUrl: string;
  readonly partitions: number;
  readonly outbox: Pick<Outbox, 'readBacklog'>;
  readonly drain: DrainBlock;
  readonly logger: Logger;
  readonly spans?: StartSpan | null;
}

/** close() finishes or requeues a running block within six seconds. */
export function startDrainJobs(options: DrainJobsOptions): Consumer {
  const { redisUrl, outbox, partitions, logger } = options;
  return startConsumer<DrainJobData, DrainResult>({
    ...{ name: 'the pipeline', redisUrl, logger, openQueue: openDrainQueue, shutdownMs },
    worker: {
      concurrency: shardCount,
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      maxStalledCount: unlimited,
      settings: { backoffStrategy: (attempt) => computeRetryDelay(attempt, Math.random()) },
    },
    enqueueMs: sweepMs,
    onEnqueueFailed: (err) => logger.debug({ err }, 'Redis is unavailable; the outbox is checked later'),
    onJobFailed: (err, job) =>
      logger.warn(
        { err, job: job?.id, attempt: job?.attemptsMade },
        'draining the outbox failed; it is retried',
      ),
    handlers: (access) => {
      const sweep = createSweep(outbox, partitions, (shard) => enqueueShard(access.queue, shard));
      return {
        processJob: createJobHandler(options, access),
        enqueue: () => sweep(performance.now()),
        // The next block may be due immediately.
        onCompleted: (enqueue) => enqueue(),
        // A removed job loses its pinned block. Its rows are old by then, so the next drain looks them up first.
        unblockJobs: () => unblockJobs(access, indices(shardCount).map(drainJobId)),
        describePending: async () => {
          const backlog = await outbox.readBacklog(indices(partitions));
          const heads = backlog.flatMap(({ partition, head, length, due }) =>
            length + due > 0 ? [`${partition} ${head} ${due}`] : [],
          );
          return heads.length === 0 ? null : heads.join();
        },
      };
    },
  });
}

function createJobHandler({ partitions, drain, spans }: DrainJobsOptions, access: QueueAccess<DrainJobData>) {
  /**
   * BullMQ may start a job again that lost its lock but still runs. The second run of a shard waits for the
   * first.
   */
  const shardRuns = new Map<number, Promise<DrainResult>>();
  return async (job: DrainJob, token: string, signal: AbortSignal): Promise<DrainResult> => {
    const { v, shard, batch } = job.data;
    if (v !== 1)
      throw new Error(`unsupported version ${String(v)} of a drain job; this process supports version 1`);
    const save = (block: PinnedBlock): Promise<void> => saveBatch(access, job, token, block);
    const span = spans?.('job') ?? null;
    const task = { partitions: listShardPartitions(shard, partitions), batch, save, signal, span };
    const run = () => endSpanAfter(span, drain(task));
    const latest = shardRuns.get(shard)?.then(run, run) ?? run();
    shardRuns.set(shard, latest);
    return latest;
  };
}

export const openDrainQueue = (connection: Redis | Cluster): Queue<DrainJobData> =>
  openQueue(drainQueueName, connection, { attempts: unlimited, backoff: { type: 'custom' } });

/** Milliseconds: exponential, capped, with up to 20 % jitter. */
export function computeRetryDelay(attempt: number, random: number): number {
  const delay = Math.min(minRetryMs * 2 ** Math.min(attempt - 1, 10), maxRetryMs);
  return Math.round(delay * (1 + random / 5));
}

export const listShardPartitions = (shard: number, partitions: number): number[] =>
  indices(partitions).filter((p) => p % shardCount === shard);

/** BullMQ ignores a job while the shard has one. */
export async function enqueueShard(queue: Queue<DrainJobData>, shard: number): Promise<void> {
  await queue.add('drain', { v: 1, shard, batch: null }, { jobId: drainJobId(shard) });
}

/** `now`: monotonic milliseconds. */
export function createSweep(
  outbox: Pick<Outbox, 'readBacklog'>,
  partitions: number,
  enqueue: (shard: number) => Promise<void>,
): (now: number) => Promise<void> {
  const enqueuedAt = Array.from({ length: shardCount }, () => Number.NEGATIVE_INFINITY);
  return async (now) => {
    await Promise.all(
      enqueuedAt.map(async (before, shard) => {
        const backlog = await outbox.readBacklog(listShardPartitions(shard, partitions));
        const pendingWork = computeSum(backlog.map(({ length, due }) => length + due));
        const pause =
          pendingWork >= immediateRows ? 0 : pendingWork < busyRows ? enqueueIntervalMs : busyIntervalMs;
        if (pendingWork === 0 || now - before < pause) return;
        enqueuedAt[shard] = now;
        await enqueue(shard);
      }),
    );
  };
}

/**
 * Requires the job's lock: a suspended worker may resume after another one drained the same rows. updateData
 * of BullMQ would let it pin them again. KEYS: lock, job. ARGV: token, data.
 */
const saveBatchScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], 'data', ARGV[2])
return 1
`;

async function saveBatch(
  { connection, queue }: QueueAccess<DrainJobData>,
  job: DrainJob,
  token: string,
  batch: PinnedBlock,
): Promise<void> {
  const key = queue.toKey(`${job.id}`);
  const data = JSON.stringify({ ...job.data, batch });
  const saved = await connection.eval(saveBatchScript, 2, `${key}:lock`, key, token, data);
  if (saved !== 1) throw new Error('another worker has taken over the job');
}
