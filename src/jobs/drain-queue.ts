/** The BullMQ side of draining: one job per shard that is tried until it succeeds. */
import { type Job, Queue, Worker } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import {
  type DrainJobData,
  drainJobId,
  drainQueueName,
  drainShards,
  type FixedBatch,
  queuePrefix,
} from '../contracts/jobs.js';
import type { DrainResult, DrainShard } from '../services/pipeline/complete-block.js';

/**
 * A dead worker's job is found by the first check after its lock has ended that is not the first to see the job:
 * 5 s and at most one more interval, so within 8 s.
 */
const lockMs = 5000;
const stalledCheckMs = 3000;
/** BullMQ's bounds turned off: a job that failed for good would swallow every later one of its id. */
const unlimited = Number.MAX_SAFE_INTEGER;
const firstRetryMs = 250;
const lastRetryMs = 5000;

/** Milliseconds before the next attempt: doubling, capped, with up to a fifth more so that shards part. */
export function retryDelay(attempt: number, random: number): number {
  const delay = Math.min(firstRetryMs * 2 ** Math.min(attempt - 1, 10), lastRetryMs);
  return Math.round(delay * (1 + random / 5));
}

export const partitionsOf = (shard: number, partitions: number): number[] =>
  Array.from({ length: partitions }, (_, partition) => partition).filter((p) => p % drainShards === shard);

export function createDrainQueue(connection: Redis | Cluster): Queue<DrainJobData> {
  return new Queue<DrainJobData>(drainQueueName, {
    connection,
    prefix: queuePrefix,
    streams: { events: { maxLen: 100 } },
    defaultJobOptions: {
      attempts: unlimited,
      backoff: { type: 'custom' },
      removeOnComplete: true,
      removeOnFail: true,
      stackTraceLimit: 1,
    },
  });
}

/** Does nothing where the shard's job is outstanding already. */
export async function armShard(queue: Queue<DrainJobData>, shard: number): Promise<void> {
  await queue.add('drain', { v: 1, shard, batch: null }, { jobId: drainJobId(shard) });
}

/**
 * Takes away what keeps a shard's job from running: a queue that was paused, a lock that never ends, and a job in a
 * state in which no worker looks for it (failed, far ahead, in no list), which would swallow every later one of its id.
 * A job that waits, or that somebody runs, stays. What was fixed in one that is taken away is found by its age
 * (services/pipeline/drain-outbox.ts).
 */
export async function freeShard(
  queue: Queue<DrainJobData>,
  connection: Redis | Cluster,
  shard: number,
): Promise<void> {
  const id = drainJobId(shard);
  const lock = `${queue.toKey(id)}:lock`;
  if (await queue.isPaused()) await queue.resume();
  if ((await connection.pttl(lock)) === neverEnds) await connection.del(lock);
  const state = await queue.getJobState(id);
  if (state !== 'active' && state !== 'waiting') await queue.remove(id);
}

/** What PTTL tells of a key without an end. */
const neverEnds = -1;

export function createDrainWorker(
  connection: Redis | Cluster,
  partitions: number,
  drain: DrainShard,
  signal: AbortSignal,
): Worker<DrainJobData, DrainResult> {
  const oneByOne = createTurns();
  const keep = async (job: DrainJob, token: string, batch: FixedBatch): Promise<void> => {
    const key = worker.toKey(`${job.id}`);
    const data = JSON.stringify({ ...job.data, batch });
    const kept = await connection.eval(keepScript, 2, `${key}:lock`, key, token, data);
    if (kept !== 1) throw new Error('the job was given to another worker meanwhile');
  };
  const run = (job: DrainJob, token: string): Promise<DrainResult> => {
    const { v, shard, batch } = job.data;
    if (v !== 1) throw new Error(`drain job of version ${String(v)}: this process knows 1`);
    const save = (fixed: FixedBatch): Promise<void> => keep(job, token, fixed);
    return oneByOne(shard, () => drain({ partitions: partitionsOf(shard, partitions), batch, save, signal }));
  };
  const worker = new Worker<DrainJobData, DrainResult>(
    drainQueueName,
    async (job, token = '') => run(job, token),
    {
      connection,
      prefix: queuePrefix,
      concurrency: drainShards,
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      maxStalledCount: unlimited,
      settings: { backoffStrategy: (attempt) => retryDelay(attempt, Math.random()) },
    },
  );
  return worker;
}

type DrainJob = Job<DrainJobData, DrainResult>;

/**
 * Keeps a fixed batch in the job's data, but only for the worker that holds the job: one that was stopped between
 * reading and fixing may wake up when another has drained the same rows, and BullMQ's own updateData would let it
 * fix them again. KEYS: lock, job. ARGV: the worker's token, data. Result: 1 if kept.
 */
const keepScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], 'data', ARGV[2])
return 1
`;

/** A job whose lock was lost may be handed out again while it runs: the second run of a shard waits its turn. */
function createTurns(): <T>(shard: number, run: () => Promise<T>) => Promise<T> {
  const last = new Map<number, Promise<unknown>>();
  return (shard, run) => {
    const before = last.get(shard) ?? Promise.resolve();
    const turn = before.then(run, run);
    last.set(shard, turn);
    return turn;
  };
}
