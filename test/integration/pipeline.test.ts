import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { drainQueueName, queuePrefix, shardCount } from '../../src/contracts/outbox/job-data.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { startClickhouse } from '../../src/embedded/start-clickhouse.js';
import { startRedis } from '../../src/embedded/start-redis.js';
import { startDrainJobs } from '../../src/jobs/drain-jobs.js';
import { createLogger } from '../../src/logger.js';
import type { DrainBlock } from '../../src/services/outbox/complete-block.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import { connectRedis, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { connectWarehouse, ensureDatabase } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { createSchema } from '../../src/warehouse/schema/create-schema.js';
import { fillOutbox } from '../support/builders/attempt-rows.js';
import { allOnce, counts, testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const partitions = 16;
const logger = createLogger('fatal', 'test');
const { clickhouseUrl } = await freshDatabase();

/** A connection that is ended with the test, errors of a stopped Redis unheard. */
async function connect(t: TestContext, url: string): Promise<Redis> {
  const redis = connectRedis(url) as Redis;
  redis.on('error', () => undefined);
  t.after(() => redis.disconnect());
  await waitUntilReady(redis, 10_000);
  return redis;
}

function start(t: TestContext, redisUrl: string, redis: Redis, clickhouseUrl: string) {
  const client = connectWarehouse(clickhouseUrl);
  const outbox = createOutbox(redis, partitions);
  const warehouse = createAttemptWarehouse(client);
  const drain = createDrain({ outbox, warehouse, logger, limits: { maxRows: 5000, maxBytes: 2 ** 25 } });
  /** Attempts by their outcomes. */
  const stats = { blocks: 0, retries: 0, lastError: null as string | null };
  const counting: DrainBlock = (task) =>
    drain(task).then(
      (result) => {
        stats.blocks += result.rows > 0 ? 1 : 0;
        stats.lastError = null;
        return result;
      },
      (error: Error) => {
        stats.retries += 1;
        stats.lastError = error.message;
        throw error;
      },
    );
  const pipeline = startDrainJobs({ redisUrl, partitions, outbox, drain: counting, logger });
  const isEmpty = async (): Promise<boolean> => (await outbox.facts()).outboxLength === 0;
  const drained = () => waitFor('the outbox to be empty', isEmpty);
  t.after(async () => {
    await pipeline.close();
    await client.close();
  });
  return { pipeline, outbox, stats, drained };
}

async function jobsLeft(redisUrl: string): Promise<Record<string, number>> {
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue(drainQueueName, { connection, prefix: queuePrefix });
  try {
    return await queue.getJobCounts();
  } finally {
    await queue.close();
    connection.disconnect();
  }
}

test('answers that keep coming reach ClickHouse in blocks, and no job is left', {
  timeout: 600_000,
}, async (t) => {
  const redisUrl = await startTestRedis(t);
  const { client, url } = await testDatabase(t, clickhouseUrl);
  const redis = await connect(t, redisUrl);
  const { outbox, stats, drained } = start(t, redisUrl, redis, url);
  const since = performance.now();
  for (let i = 0; i < 30; i++) {
    await fillOutbox(redis, partitions, i * 100, (i + 1) * 100);
    await sleep(100);
  }
  await waitFor('the outbox without hurry', async () => (await outbox.facts()).outboxLength === 0);
  const seconds = (performance.now() - since) / 1000;
  const { blocks } = stats;
  assert.ok(blocks <= shardCount * (2 + seconds / 0.9), `${blocks} blocks in ${seconds} s`);
  await fillOutbox(redis, partitions, 3000, 40_000);
  await drained();
  assert.deepEqual(await counts(client), allOnce(40_000));
  await waitFor('no job to be left', async () =>
    Object.values(await jobsLeft(redisUrl)).every((count) => count === 0),
  );
});

test('ClickHouse away means a longer outbox, nothing else', { timeout: 600_000 }, async (t) => {
  const redisUrl = await startTestRedis(t);
  const redis = await connect(t, redisUrl);
  const options = {
    dir: await tempDir(t),
    port: await findFreePort(),
    password: 'a',
    analystPassword: 'b',
    logger,
  };
  const run = () => {
    const server = startClickhouse(options);
    t.after(() => server.stop(10_000));
    return server;
  };
  let server = run();
  await server.ready;
  await ensureDatabase(server.clickhouseUrl);
  const client = connectWarehouse(server.clickhouseUrl);
  t.after(() => client.close());
  await createSchema(client);
  await server.stop(10_000);

  const { outbox, stats, drained } = start(t, redisUrl, redis, server.clickhouseUrl);
  await fillOutbox(redis, partitions, 0, 2000);
  await waitFor('two retries', () => stats.retries >= 2);
  assert.equal((await outbox.facts()).outboxLength, 2000);
  assert.ok(stats.lastError);
  assert.equal((await jobsLeft(redisUrl)).failed, 0);

  server = run();
  await server.ready;
  await drained();
  assert.deepEqual(await counts(client), allOnce(2000));

  const stopping = server.stop(10_000);
  await fillOutbox(redis, partitions, 2000, 12_000);
  await stopping;
  await fillOutbox(redis, partitions, 12_000, 15_000);
  const before = stats.retries;
  await waitFor('another retry', () => stats.retries > before);
  server = run();
  await server.ready;
  await drained();
  assert.deepEqual(await counts(client), allOnce(15_000));
  await waitFor('the error to be forgotten', () => stats.lastError === null);
});

test('a job whose process was killed is taken over', { timeout: 600_000 }, async (t) => {
  const redisUrl = await startTestRedis(t);
  const { client, url } = await testDatabase(t, clickhouseUrl);
  const redis = await connect(t, redisUrl);
  await fillOutbox(redis, partitions, 0, 3000);
  const child = spawn(
    process.execPath,
    [
      fileURLToPath(new URL('../support/servers/pipeline-process.js', import.meta.url)),
      redisUrl,
      await silentServer(t),
      String(partitions),
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  t.after(() => child.kill('SIGKILL'));
  await waitFor('both jobs in their inserts', async () => (await jobsLeft(redisUrl)).active === 2);
  await sleep(500);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const { outbox, drained } = start(t, redisUrl, redis, url);
  const took = await waitFor('the outbox', async () => (await outbox.facts()).outboxLength === 0);
  t.diagnostic(`taken over and drained after ${Math.round(took)} ms`);
  await drained();
  assert.deepEqual(await counts(client), allOnce(3000));
});

test('closing gives a hanging block back within seconds', { timeout: 600_000 }, async (t) => {
  const redisUrl = await startTestRedis(t);
  const redis = await connect(t, redisUrl);
  await fillOutbox(redis, partitions, 0, 100);
  const { pipeline } = start(t, redisUrl, redis, await silentServer(t));
  await waitFor('both jobs in their inserts', async () => (await jobsLeft(redisUrl)).active === 2);
  const since = performance.now();
  await pipeline.close();
  const took = performance.now() - since;
  assert.ok(took < 15_000, `${took} ms`);
  await waitFor('both jobs to be put back for a later attempt', async () => {
    const { active, delayed } = await jobsLeft(redisUrl);
    return active === 0 && delayed === 2;
  });
});

test('a Redis killed in the middle of draining loses and doubles no row', { timeout: 600_000 }, async (t) => {
  const { client, url } = await testDatabase(t, clickhouseUrl);
  const dir = await tempDir(t);
  const server = startRedis({ dir, port: await findFreePort(), password: 'test', fsync: 'everysec', logger });
  t.after(() => server.stop(10_000));
  await server.ready;
  const redis = await connect(t, server.url);
  await fillOutbox(redis, partitions, 0, 100_000);
  // What is in the file outlives the process.
  const written = async () => /^aof_buffer_length:0\r$/m.test(await redis.info('persistence'));
  await waitFor('the rows to be in the append-only file', written);
  const { stats, drained } = start(t, server.url, redis, url);
  await waitFor('some blocks', () => stats.blocks >= 3);
  const pid = server.pid();
  assert.ok(pid);
  process.kill(pid, 'SIGKILL');
  await waitFor('the restart', () => server.pid() !== pid && redis.status === 'ready');
  await drained();
  assert.deepEqual(await counts(client), allOnce(100_000));
});

/** Takes connections and never answers. @returns the URL of a ClickHouse there */
async function silentServer(t: TestContext): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  assert.ok(address && typeof address === 'object');
  return `http://nobody:nothing@127.0.0.1:${address.port}/nowhere`;
}
