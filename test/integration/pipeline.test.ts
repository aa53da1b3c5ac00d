/** Drain jobs and journal runs: their consumers, queue, locks and retries, while servers and processes fail. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import {
  drainJobId,
  drainQueueName,
  type PinnedBlock,
  queuePrefix,
  shardCount,
} from '../../src/contracts/outbox/job-data.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { startRedis } from '../../src/embedded/start-redis.js';
import { connectQueue } from '../../src/jobs/consumer.js';
import { startDrainJobs } from '../../src/jobs/drain-jobs.js';
import { computeSum, indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import type { DrainBlock, DrainTask } from '../../src/services/outbox/complete-block.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { connectWarehouse } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { fillOutbox } from '../support/builders/attempt-rows.js';
import { startGateway } from '../support/fault/gateway.js';
import { allOnce, counts, emptyTables, fileDatabase } from '../support/inspect/warehouse.js';
import type { Scoped } from '../support/scope.js';
import { startBlackHole } from '../support/servers/black-hole.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const partitions = 16;
const logger = createLogger('fatal', 'test');
const { client, clickhouseUrl } = await fileDatabase({ after });
const redisUrl = await startTestRedis({ after });
const redis = (await redisOf({ after }, redisUrl)) as Redis;

beforeEach(async () => {
  await redis.flushall();
  await emptyTables(client);
});

/** Starts the drain jobs of a process and counts their attempts by outcome. */
function startPipeline(t: Scoped, url = clickhouseUrl, queueUrl = redisUrl, store = redis) {
  const connection = connectWarehouse(url);
  const outbox = createOutbox(store, partitions);
  const warehouse = createAttemptWarehouse(connection);
  const drain = createDrain({ outbox, warehouse, logger, limits: { maxRows: 1000, maxBytes: 2 ** 25 } });
  const stats = { blocks: 0, retries: 0 };
  const countingDrain: DrainBlock = async (task) => {
    try {
      const result = await drain(task);
      stats.blocks += result.rows > 0 ? 1 : 0;
      return result;
    } catch (error) {
      stats.retries += 1;
      throw error;
    }
  };
  const pipeline = startDrainJobs({ redisUrl: queueUrl, partitions, outbox, drain: countingDrain, logger });
  const waitUntilEmpty = () =>
    waitFor('an empty outbox', async () => (await outbox.facts()).outboxLength === 0);
  t.after(async () => {
    await pipeline.close();
    await connection.close();
  });
  return { pipeline, outbox, stats, waitUntilEmpty };
}

async function countJobs(): Promise<Record<string, number>> {
  const connection = connectQueue(redisUrl, logger, () => false);
  const queue = new Queue(drainQueueName, { connection, prefix: queuePrefix });
  try {
    return await queue.getJobCounts();
  } finally {
    await queue.close();
    connection.disconnect();
  }
}

const waitForBothInserts = () =>
  waitFor('both jobs to insert', async () => (await countJobs()).active === shardCount);

/** A server that accepts connections and never responds. @returns its URL as that of a ClickHouse */
async function startSilentServer(t: Scoped): Promise<string> {
  const { port, swallow } = await startBlackHole(t, 1);
  swallow(true);
  return `http://user:password@127.0.0.1:${port}/database`;
}

test('Drain jobs store a trickle of answers in about one block per second and leave no job', async (t) => {
  const { stats, waitUntilEmpty } = startPipeline(t);
  const since = performance.now();
  for (let i = 0; i < 20; i++) {
    await fillOutbox(redis, partitions, i * 50, (i + 1) * 50);
    // The pace of the answers, not a wait for a result.
    await sleep(100);
  }
  await waitUntilEmpty();
  const seconds = (performance.now() - since) / 1000;
  const { blocks } = stats;
  assert.ok(blocks <= shardCount * (2 + seconds / 0.9), `${blocks} blocks in ${seconds} s`);
  await fillOutbox(redis, partitions, 1000, 6000);
  await waitUntilEmpty();
  assert.deepEqual(await counts(client), allOnce(6000));
  await waitFor('the end of all jobs', async () => computeSum(Object.values(await countJobs())) === 0);
});

test('Drain jobs retry while ClickHouse is unavailable and lose no answer', async (t) => {
  const gateway = await startGateway(t, clickhouseUrl);
  gateway.set('down');
  const { outbox, stats, waitUntilEmpty } = startPipeline(t, gateway.url);
  await fillOutbox(redis, partitions, 0, 500);
  await waitFor('two retries', () => stats.retries >= 2);
  assert.equal((await outbox.facts()).outboxLength, 500);
  assert.equal((await countJobs()).failed, 0);
  gateway.set('pass');
  await waitUntilEmpty();
  assert.deepEqual(await counts(client), allOnce(500));
});

test('A drain job takes over the block of a killed process', async (t) => {
  await fillOutbox(redis, partitions, 0, 1000);
  const program = fileURLToPath(new URL('../support/servers/pipeline-process.js', import.meta.url));
  const settings = [redisUrl, await startSilentServer(t), String(partitions)];
  const child = spawn(process.execPath, [program, ...settings], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  await waitForBothInserts();
  const pinned = async () => {
    const keys = indices(shardCount).map((shard) => `${queuePrefix}:${drainQueueName}:${drainJobId(shard)}`);
    const jobs = await Promise.all(keys.map((key) => redis.hget(key, 'data')));
    return jobs.every((data) => JSON.parse(data ?? '{}').batch != null);
  };
  await waitFor('both pinned blocks', pinned);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const { waitUntilEmpty } = startPipeline(t);
  await waitUntilEmpty();
  assert.deepEqual(await counts(client), allOnce(1000));
});

test('close() returns a block that hangs in ClickHouse to the queue within seconds', async (t) => {
  await fillOutbox(redis, partitions, 0, 100);
  const { pipeline } = startPipeline(t, await startSilentServer(t));
  await waitForBothInserts();
  const since = performance.now();
  await pipeline.close();
  const took = performance.now() - since;
  assert.ok(took < 30_000, `${took} ms`);
  await waitFor('both jobs to wait for a retry', async () => {
    const { active, delayed } = await countJobs();
    return active === 0 && delayed === shardCount;
  });
});

test('Drain jobs lose and double no row if Redis is killed between blocks', async (t) => {
  const dir = await tempDir(t);
  const server = startRedis({ dir, port: await findFreePort(), password: 'test', fsync: 'everysec', logger });
  t.after(() => server.stop(10_000));
  await server.ready;
  const killed = (await redisOf(t, server.url)) as Redis;
  await fillOutbox(killed, partitions, 0, 16_000);
  await waitFor('the rows in the append-only file', async () =>
    /^aof_buffer_length:0\r$/m.test(await killed.info('persistence')),
  );
  const { stats, waitUntilEmpty } = startPipeline(t, clickhouseUrl, server.url, killed);
  await waitFor('three blocks', () => stats.blocks >= 3);
  const pid = server.pid();
  assert.ok(pid);
  process.kill(pid, 'SIGKILL');
  await waitFor('the restart of Redis', () => server.pid() !== pid && killed.status === 'ready');
  await waitUntilEmpty();
  assert.deepEqual(await counts(client), allOnce(16_000));
});

test('Only the worker that owns a drain job can pin its block', async (t) => {
  const ranges = [{ partition: 0, from: '1-0', to: '2-0', rows: 2 }];
  const block: PinnedBlock = { ranges, rows: 2, fixedAt: 1, verify: false };
  const batches: (PinnedBlock | null)[] = [];
  const errors: unknown[] = [];
  let isFinished = false;
  /** The first run loses its lock, like a process that was suspended. The second one pins the block. */
  const drain = async ({ batch, save }: DrainTask) => {
    batches.push(batch);
    const lock = `${queuePrefix}:${drainQueueName}:${drainJobId(0)}:lock`;
    if (batches.length === 1) await redis.set(lock, 'another worker', 'PX', 1000);
    await save(block).catch((error: unknown) => errors.push(error));
    if (batch === null) throw new Error('retry');
    isFinished = true;
    return { rows: 0, present: 0 };
  };
  /** The first partition always has a row. */
  const outbox = {
    readBacklog: async (wanted: readonly number[]) =>
      wanted.map((partition) => ({ partition, length: partition === 0 ? 1 : 0, head: '1-0', due: 0 })),
  };
  const drains = startDrainJobs({ redisUrl, partitions: 2, outbox, drain, logger });
  t.after(() => drains.close());
  await waitFor('the pinned block', () => isFinished);
  assert.match(String(errors[0]), /another worker has taken over/);
  assert.equal(errors.length, 1);
  assert.deepEqual(batches, [null, null, block]);
});
