/** Consumers of BullMQ that make no progress are restarted. */
import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import {
  deliveryJobId,
  deliveryQueueName,
  drainJobId,
  queuePrefix,
  shardCount,
} from '../../src/contracts/outbox/job-data.js';
import { startDeliveryJobs } from '../../src/jobs/delivery-jobs.js';
import { openDrainQueue, startDrainJobs } from '../../src/jobs/drain-jobs.js';
import { startScheduledRuns } from '../../src/jobs/scheduled-runs.js';
import { indices } from '../../src/lists.js';
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
const logger = createLogger('silent', 'test');
const redisServer = await startTestRedis({ after });
let databases = 0;

/** Each case has a database of the same Redis. */
async function createOutboxCase(t: TestContext) {
  databases += 1;
  const redisUrl = `${redisServer}/${databases}`;
  const redis = await redisOf(t, redisUrl);
  const outbox = createOutbox(redis, partitions);
  const waitUntilEmpty = () =>
    waitFor('an empty outbox', async () => (await outbox.facts()).outboxLength === 0);
  const fill = (from: number, to: number) => fillOutbox(redis, partitions, from, to);
  const startDrain = (drain: DrainBlock = discardRows(outbox), url = redisUrl) => {
    const consumer = startDrainJobs({ redisUrl: url, partitions, outbox, drain, logger });
    t.after(() => consumer.close());
    return consumer;
  };
  return { redisUrl, redis, outbox, fill, waitUntilEmpty, startDrain };
}

/** Removes rows from the outbox without ClickHouse. */
const discardRows =
  (outbox: Outbox): DrainBlock =>
  async ({ partitions: wanted }) => {
    const read = await outbox.peek(wanted, { maxRows: 1000, maxBytes: 2 ** 30 });
    await outbox.trim(read.ranges);
    return { rows: read.rows, present: 0 };
  };

const throughPort = (url: string, port: number): string => Object.assign(new URL(url), { port }).href;
const portOf = (url: string): number => Number(new URL(url).port);

function openQueue(t: TestContext, name: string, url: string): Queue {
  const queue = new Queue(name, { connection: { url, maxRetriesPerRequest: null }, prefix: queuePrefix });
  queue.on('error', () => undefined);
  t.after(() => queue.close());
  return queue;
}

type DrainQueue = ReturnType<typeof openDrainQueue>;
const shards = indices(shardCount);
async function addJobs(queue: DrainQueue, delay = 0): Promise<void> {
  for (const shard of shards)
    await queue.add('drain', { v: 1, shard, batch: null }, { jobId: drainJobId(shard), delay });
}

/** States in which no worker takes the jobs, and jobs with the same ids cannot be added. */
const stuckJobs: Readonly<Record<string, (redis: Redis, queue: DrainQueue) => Promise<unknown>>> = {
  'in a paused queue': (_, queue) => queue.pause(),
  'with a long delay': (_, queue) => addJobs(queue, 86_400_000),
  'missing in all lists': async (redis, queue) => {
    await addJobs(queue);
    await redis.del(queue.toKey('wait'));
  },
  'in the list of failed jobs': async (redis, queue) => {
    await addJobs(queue);
    await redis.del(queue.toKey('wait'));
    for (const shard of shards) await redis.zadd(queue.toKey('failed'), Date.now(), drainJobId(shard));
  },
  'with a lock that never expires': async (redis, queue) => {
    await addJobs(queue);
    await redis.rename(queue.toKey('wait'), queue.toKey('active'));
    for (const shard of shards) await redis.set(`${queue.toKey(drainJobId(shard))}:lock`, 'unknown');
  },
};

const schedule = { name: 'test', attempts: 1, firstRetryMs: 1000, failure: 'a run failed' };
const untouched = { stalls: 0, restarts: 0 };

// Most of each test is waiting.
describe('The watch of a consumer', { concurrency: true }, () => {
  test('replaces connections to Redis that no longer deliver anything', async (t) => {
    const { redisUrl, outbox, fill, waitUntilEmpty, startDrain } = await createOutboxCase(t);
    const hole = await startBlackHole(t, portOf(redisUrl));
    startDrain(discardRows(outbox), throughPort(redisUrl, hole.port));
    await fill(0, 100);
    await waitUntilEmpty();
    hole.swallow(false);
    await fill(100, 200);
    await waitUntilEmpty();
  });

  test('reports an insert that hangs, restarts, and inserts each row once', async (t) => {
    const { outbox, fill, waitUntilEmpty, startDrain } = await createOutboxCase(t);
    const { clickhouseUrl } = await freshDatabase();
    const { client, url } = await testDatabase(t, clickhouseUrl);
    const hole = await startBlackHole(t, portOf(url));
    const through = connectWarehouse(throughPort(url, hole.port));
    t.after(() => through.close());
    const warehouse = createAttemptWarehouse(through);
    const consumer = startDrain(createDrain({ outbox, warehouse, logger }));
    await fill(0, 100);
    await waitUntilEmpty();
    assert.deepEqual([consumer.getStallReason(), consumer.getCounts()], [null, untouched]);
    hole.swallow(true);
    await fill(100, 200);
    await waitFor('the stall', () => consumer.getStallReason() !== null);
    assert.match(
      consumer.getStallReason() ?? '',
      /^the pipeline made no progress for \d+ s although work is pending$/,
    );
    await waitFor('a restart', () => consumer.getCounts().restarts > 0);
    hole.release();
    await waitUntilEmpty();
    await waitFor('the end of the stall', () => consumer.getStallReason() === null);
    assert.deepEqual(await counts(client), allOnce(200));
  });

  for (const [state, spoil] of Object.entries(stuckJobs))
    test(`frees drain jobs that are ${state}`, async (t) => {
      const { redisUrl, fill, waitUntilEmpty, startDrain } = await createOutboxCase(t);
      const connection = (await redisOf(t, redisUrl)) as Redis;
      const queue = openDrainQueue(connection);
      t.after(() => queue.close());
      await spoil(connection, queue);
      await fill(0, 10);
      const consumer = startDrain();
      await waitUntilEmpty();
      assert.ok(consumer.getCounts().restarts > 0, 'the jobs were not stuck');
    });

  test('does not count an empty outbox, failing drains or failing deliveries as stalls', async (t) => {
    const [idle, failing] = [await createOutboxCase(t), await createOutboxCase(t)];
    const drains = [
      idle.startDrain(),
      failing.startDrain(() => Promise.reject(new Error('ClickHouse is down'))),
    ];
    let failures = 0;
    const deliveries = startDeliveryJobs({
      ...{ redisUrl: idle.redisUrl, logger, dispatchEvents: async () => false },
      listDueEndpoints: async () => [{ tenant: 'default', id: 'wh_1' }],
      deliver: async () => {
        failures += 1;
        throw new Error('unknown webhook');
      },
    });
    t.after(() => deliveries.close());
    await failing.fill(0, 10);
    // Longer than a stall takes.
    await sleep(30_000);
    for (const consumer of [...drains, deliveries])
      assert.deepEqual([consumer.getStallReason(), consumer.getCounts()], [null, untouched]);
    assert.ok(failures > 5, `${failures} failed deliveries`);
  });

  const farAhead = Date.now() + 86_400_000;
  const damages = {
    'with a paused queue': {
      isDamaged: (queue: Queue) => queue.isPaused(),
      apply: (queue: Queue) => queue.pause(),
    },
    'with its next run far ahead': {
      isDamaged: async (queue: Queue) => ((await queue.getJobScheduler('test'))?.next ?? 0) >= farAhead,
      apply: (queue: Queue) => queue.upsertJobScheduler('test', { every: 86_400_000, startDate: farAhead }),
    },
  };
  for (const [state, { isDamaged, apply }] of Object.entries(damages))
    test(`restores a schedule ${state}`, async (t) => {
      const { redisUrl } = await createOutboxCase(t);
      const queue = openQueue(t, 'test', redisUrl);
      let runs = 0;
      const run = async () => {
        runs += 1;
      };
      const job = startScheduledRuns(schedule, { redisUrl, everyMs: 1000, run, logger });
      t.after(() => job.close());
      await waitFor('a run', () => runs > 0);
      await waitFor('the restart', async () => {
        // Read before the count: otherwise a restart in between would be undone.
        const damaged = await isDamaged(queue);
        if (job.getCounts().restarts > 0) return true;
        // The job sets its schedule again every 30 s.
        if (!damaged) await apply(queue);
        return false;
      });
      const before = runs;
      await waitFor('runs', () => runs > before + 1);
      assert.equal(job.getStallReason(), null);
    });

  test('frees delivery jobs that no worker takes', async (t) => {
    const { redisUrl, redis } = await createOutboxCase(t);
    const queue = openQueue(t, deliveryQueueName, redisUrl);
    const delivered = new Set<string>();
    const jobId = deliveryJobId('wh_1');
    await queue.add('deliver', { v: 1, tenant: 'default', id: 'wh_1' }, { jobId });
    await redis.del(queue.toKey('wait'));
    await queue.pause();
    const deliveries = startDeliveryJobs({
      ...{ redisUrl, logger, dispatchEvents: async () => false },
      listDueEndpoints: async () => ['wh_1', 'wh_2'].map((id) => ({ tenant: 'default', id })),
      deliver: async ({ id }) => void delivered.add(id),
    });
    t.after(() => deliveries.close());
    await waitFor('deliveries to both endpoints', () => delivered.size === 2);
    assert.equal(deliveries.getCounts().stalls, 1);
  });

  test('abandons a run that never ends and starts the next one', async (t) => {
    const { redisUrl } = await createOutboxCase(t);
    let runs = 0;
    const run = () => {
      runs += 1;
      return runs === 1 ? new Promise<void>(() => undefined) : Promise.resolve();
    };
    const options = { ...schedule, hasShortRuns: true };
    const job = startScheduledRuns(options, { redisUrl, everyMs: 1000, run, logger });
    t.after(() => job.close());
    await waitFor('the end of the first run', () => job.getCounts().stalls === 1);
    await waitFor('the next run', () => runs > 1);
    await waitFor('the end of the stall', () => job.getStallReason() === null);
  });
});
