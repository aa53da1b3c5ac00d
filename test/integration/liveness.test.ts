/** A consumer that does not move with work waiting is told of and begins anew, whatever holds it. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import {
  type DrainJobData,
  deliveryJobId,
  deliveryQueueName,
  drainJobId,
  queuePrefix,
  shardCount,
} from '../../src/contracts/outbox/job-data.js';
import type { Consumer } from '../../src/jobs/consumer.js';
import { startDeliveryJobs } from '../../src/jobs/delivery-jobs.js';
import { openDrainQueue, startDrainJobs } from '../../src/jobs/drain-jobs.js';
import { startScheduledRuns } from '../../src/jobs/scheduled-runs.js';
import { createLogger } from '../../src/logger.js';
import type { DrainBlock } from '../../src/services/outbox/complete-block.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { createOutbox, type Outbox } from '../../src/store/outbox/outbox.js';
import { connectWarehouse } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { fillOutbox } from '../support/builders/attempt-rows.js';
import { allOnce, counts, testDatabase } from '../support/inspect/warehouse.js';
import { startBlackHole } from '../support/servers/black-hole.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const partitions = 4;
const limitMs = 120_000;
const logger = createLogger('silent', 'test');

/** Takes rows from the outbox, for what is not about ClickHouse. */
const takeAll =
  (outbox: Outbox): DrainBlock =>
  async ({ partitions: wanted }) => {
    const read = await outbox.peek(wanted, { maxRows: 1000, maxBytes: 2 ** 30 });
    await outbox.trim(read.ranges);
    return { rows: read.rows, present: 0 };
  };

function watched(
  t: TestContext,
  redisUrl: string,
  outbox: Outbox,
  drain: DrainBlock = takeAll(outbox),
): Consumer {
  const pipeline = startDrainJobs({ redisUrl, partitions, outbox, drain, logger });
  t.after(() => pipeline.close());
  return pipeline;
}

async function setUp(t: TestContext) {
  const redisUrl = await startTestRedis(t);
  const redis = await redisOf(t, redisUrl);
  const outbox = createOutbox(redis, partitions);
  const isEmpty = async (): Promise<boolean> => (await outbox.facts()).outboxLength === 0;
  return { redisUrl, redis, outbox, isEmpty };
}

const throughPort = (url: string, port: number): string => {
  const through = new URL(url);
  through.port = `${port}`;
  return through.href;
};

const schedule = { name: 'test', attempts: 1, firstRetryMs: 1000, failure: 'a run failed' };

const portOf = (url: string): number => Number(new URL(url).port);

/** Jobs in states in which nobody takes them, and nobody can add one of the same id. */
const stuck: Readonly<Record<string, (redis: Redis, queue: ReturnType<typeof openDrainQueue>) => unknown>> = {
  'the queue is paused': (_, queue) => queue.pause(),
  'the jobs are far ahead': (_, queue) => addAll(queue, { delay: 86_400_000 }),
  'the jobs are in no list': async (redis, queue) => {
    await addAll(queue, {});
    await redis.del(queue.toKey('wait'));
  },
  'the jobs have failed': async (redis, queue) => {
    await addAll(queue, {});
    await redis.del(queue.toKey('wait'));
    await eachShard((shard) => redis.zadd(queue.toKey('failed'), Date.now(), drainJobId(shard)));
  },
  'the jobs are locked by nobody, for ever': async (redis, queue) => {
    await addAll(queue, {});
    await redis.rename(queue.toKey('wait'), queue.toKey('active'));
    await eachShard((shard) => redis.set(`${queue.toKey(drainJobId(shard))}:lock`, 'nobody'));
  },
};

const eachShard = (work: (shard: number) => Promise<unknown>): Promise<unknown> =>
  Promise.all(Array.from({ length: shardCount }, (_, shard) => work(shard)));

const addAll = (queue: ReturnType<typeof openDrainQueue>, options: { delay?: number }) =>
  eachShard((shard) => {
    const data: DrainJobData = { v: 1, shard, batch: null };
    return queue.add('drain', data, { jobId: drainJobId(shard), ...options });
  });

// Each on servers of its own, and nearly all of it is waiting.
describe('each consumer', { concurrency: true }, () => {
  test('the connections of the queues are black holes: others are made', { timeout: 600_000 }, async (t) => {
    const { redisUrl, redis, outbox, isEmpty } = await setUp(t);
    const hole = await startBlackHole(t, portOf(redisUrl));
    watched(t, throughPort(redisUrl, hole.port), outbox);
    await fillOutbox(redis, partitions, 0, 100);
    await waitFor('the first rows', isEmpty, limitMs);
    hole.swallow(false);
    await fillOutbox(redis, partitions, 100, 200);
    await waitFor('the rows behind the black hole', isEmpty, limitMs);
  });

  test('an insert that hangs is told of, given up and repeated', { timeout: 600_000 }, async (t) => {
    const { redisUrl, redis, outbox, isEmpty } = await setUp(t);
    const { clickhouseUrl } = await freshDatabase();
    const { client, url } = await testDatabase(t, clickhouseUrl);
    const hole = await startBlackHole(t, portOf(url));
    const through = connectWarehouse(throughPort(url, hole.port));
    t.after(() => through.close());
    const warehouse = createAttemptWarehouse(through);
    const pipeline = watched(t, redisUrl, outbox, createDrain({ outbox, warehouse, logger }));
    await fillOutbox(redis, partitions, 0, 100);
    await waitFor('the first rows', isEmpty, limitMs);
    assert.deepEqual([pipeline.getStallReason(), pipeline.getCounts()], [null, { stalls: 0, restarts: 0 }]);
    hole.swallow(true);
    await fillOutbox(redis, partitions, 100, 200);
    await waitFor('the stall to be told', () => pipeline.getStallReason() !== null, limitMs);
    assert.match(pipeline.getStallReason() ?? '', /^the pipeline has not moved for \d+ s with work waiting$/);
    await waitFor('a restart', () => pipeline.getCounts().restarts > 0, limitMs);
    hole.release();
    await waitFor('the rows', isEmpty, limitMs);
    await waitFor('the end of the stall', () => pipeline.getStallReason() === null, limitMs);
    assert.deepEqual(await counts(client), allOnce(200));
  });

  test('jobs that nobody takes are freed', { timeout: 600_000, concurrency: true }, async (t) => {
    const cases = Object.entries(stuck).map(([what, spoil]) =>
      t.test(what, async (t) => {
        const { redisUrl, redis, outbox, isEmpty } = await setUp(t);
        const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
        connection.on('error', () => undefined);
        const queue = openDrainQueue(connection);
        t.after(async () => {
          await queue.close();
          connection.disconnect();
        });
        await spoil(connection, queue);
        await fillOutbox(redis, partitions, 0, 10);
        const pipeline = watched(t, redisUrl, outbox);
        await waitFor('the rows', isEmpty, limitMs);
        assert.ok(pipeline.getCounts().restarts > 0, 'freed by the watch, not by itself');
      }),
    );
    await Promise.all(cases);
  });

  test('attempts that end with an error, and an empty outbox, are no stall', {
    timeout: 600_000,
  }, async (t) => {
    const { redisUrl, redis, outbox } = await setUp(t);
    const failing: DrainBlock = () => Promise.reject(new Error('ClickHouse is away'));
    const empty = watched(t, redisUrl, createOutbox(await redisOf(t, await startTestRedis(t)), partitions));
    const pipeline = watched(t, redisUrl, outbox, failing);
    await fillOutbox(redis, partitions, 0, 10);
    const until = performance.now() + 30_000;
    await waitFor('half a minute', () => performance.now() > until, limitMs);
    assert.deepEqual([pipeline.getStallReason(), pipeline.getCounts()], [null, { stalls: 0, restarts: 0 }]);
    assert.deepEqual([empty.getStallReason(), empty.getCounts()], [null, { stalls: 0, restarts: 0 }]);
  });

  test('a schedule whose runs do not come is made anew', {
    timeout: 600_000,
    concurrency: true,
  }, async (t) => {
    const farAhead = { every: 86_400_000, startDate: Date.now() + 86_400_000 };
    const spoilers: Record<string, (queue: Queue) => Promise<unknown>> = {
      'the queue is paused': (queue) => queue.pause(),
      'its next run is far ahead': (queue) => queue.upsertJobScheduler('test', farAhead),
    };
    const cases = Object.entries(spoilers).map(([what, spoil]) =>
      t.test(what, async (t) => {
        const redisUrl = await startTestRedis(t);
        const queue = new Queue('test', {
          connection: { url: redisUrl, maxRetriesPerRequest: null },
          prefix: queuePrefix,
        });
        queue.on('error', () => undefined);
        t.after(() => queue.close());
        let runs = 0;
        const job = startScheduledRuns(schedule, {
          redisUrl,
          everyMs: 1000,
          run: async () => {
            runs += 1;
          },
          logger,
        });
        t.after(() => job.close());
        await waitFor('a run', () => runs > 0, limitMs);
        await waitFor(
          'the stall to be told',
          async () => {
            // Again and again: a schedule that is not as it was set is set again every half a minute.
            if (job.getStallReason() === null) await spoil(queue);
            return job.getStallReason() !== null;
          },
          limitMs,
        );
        const before = runs;
        await waitFor('runs', () => runs > before + 1, limitMs);
        await waitFor('the end of the stall', () => job.getStallReason() === null, limitMs);
        assert.ok(job.getCounts().restarts > 0);
      }),
    );
    await Promise.all(cases);
  });

  test('an endpoint of webhooks whose runs fail is no stall', { timeout: 600_000 }, async (t) => {
    let runs = 0;
    const deliveries = startDeliveryJobs({
      ...{ redisUrl: await startTestRedis(t), logger, dispatchEvents: async () => false },
      listDueEndpoints: async () => [{ tenant: 'default', id: 'wh_1' }],
      deliver: async () => {
        runs += 1;
        throw new Error('a stored webhook is not known to this version');
      },
    });
    t.after(() => deliveries.close());
    await waitFor('runs for longer than a stall', () => runs > 30, limitMs);
    assert.deepEqual(deliveries.getCounts(), { stalls: 0, restarts: 0 });
  });

  test('jobs of webhooks that nobody takes are freed', { timeout: 600_000 }, async (t) => {
    const redisUrl = await startTestRedis(t);
    const redis = await redisOf(t, redisUrl);
    const connection = { url: redisUrl, maxRetriesPerRequest: null };
    const queue = new Queue(deliveryQueueName, { connection, prefix: queuePrefix });
    queue.on('error', () => undefined);
    t.after(() => queue.close());
    const [jobId, runs] = [deliveryJobId('wh_1'), new Set<string>()];
    await queue.add('deliver', { v: 1, tenant: 'default', id: 'wh_1' }, { jobId });
    await redis.del(queue.toKey('wait'));
    await queue.pause();
    const deliveries = startDeliveryJobs({
      ...{ redisUrl, logger, dispatchEvents: async () => false },
      listDueEndpoints: async () => ['wh_1', 'wh_2'].map((id) => ({ tenant: 'default', id })),
      deliver: async ({ id }) => void runs.add(id),
    });
    t.after(() => deliveries.close());
    await waitFor('runs of both endpoints', () => runs.size === 2, limitMs);
    assert.equal(deliveries.getCounts().stalls, 1);
  });

  test('a run that does not end is given up, and the next one comes', { timeout: 600_000 }, async (t) => {
    let runs = 0;
    const job = startScheduledRuns(
      { ...schedule, hasShortRuns: true },
      {
        redisUrl: await startTestRedis(t),
        everyMs: 1000,
        run: () => {
          runs += 1;
          return runs === 1 ? new Promise(() => undefined) : Promise.resolve();
        },
        logger,
      },
    );
    t.after(() => job.close());
    await waitFor('the first run to be given up', () => job.getCounts().stalls === 1, limitMs);
    await waitFor('the next one', () => runs > 1, limitMs);
    await waitFor('the end of the stall', () => job.getStallReason() === null, limitMs);
  });
});
