import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Redis } from 'ioredis';
import type { PinnedBlock } from '../../src/contracts/outbox/job-data.js';
import { createLogger } from '../../src/logger.js';
import type { DrainTask } from '../../src/services/outbox/complete-block.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { createOutbox, type Outbox } from '../../src/store/outbox/outbox.js';
import { outboxKey, outboxRowCountKey } from '../../src/store/redis/keys.js';
import {
  type AttemptWarehouse,
  createAttemptWarehouse,
} from '../../src/warehouse/ingest/attempt-warehouse.js';
import { fillOutbox } from '../support/builders/attempt-rows.js';
import { allOnce, counts, filledTables, testDatabase } from '../support/inspect/warehouse.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const partitions = 4;
const all = [0, 1, 2, 3];
const logger = createLogger('error', 'test');

/** A task and the batch that it saved last. */
function newTask(batch: PinnedBlock | null = null): DrainTask & { saved: PinnedBlock | null } {
  const task = {
    partitions: all,
    batch,
    saved: batch,
    save: async (fixed: PinnedBlock) => {
      task.saved = fixed;
    },
  };
  return task;
}

const failing = () => Promise.reject(new Error('cut here'));

test('draining', { timeout: 600_000 }, async (t) => {
  const [redisUrl, { clickhouseUrl }] = await Promise.all([startTestRedis(t), freshDatabase()]);
  const redis = (await redisOf(t, redisUrl)) as Redis;
  const outbox = createOutbox(redis, partitions);

  /** A process that has just started: it trusts nothing older than itself. */
  const newDrain = (
    warehouse: AttemptWarehouse,
    box: Outbox = outbox,
    limits = { maxRows: 1000, maxBytes: 2 ** 30 },
  ) => createDrain({ outbox: box, warehouse, logger, limits });

  async function setUp(t: Parameters<typeof testDatabase>[0]) {
    const { client } = await testDatabase(t, clickhouseUrl);
    await Promise.all(all.map((partition) => redis.del(outboxKey(partition), outboxRowCountKey(partition))));
    return { client, warehouse: createAttemptWarehouse(client) };
  }

  await t.test('blocks are bounded, shared among the partitions and leave the outbox', async (t) => {
    const { client, warehouse } = await setUp(t);
    await fillOutbox(redis, partitions, 0, 2500);
    const { outboxLength, oldestPendingSeconds, parked } = await outbox.facts();
    assert.deepEqual([outboxLength, parked], [2500, 0]);
    assert.ok(oldestPendingSeconds >= 0 && oldestPendingSeconds < 60);
    const drain = newDrain(warehouse);
    const task = newTask();
    assert.deepEqual(await drain(task), { rows: 1000, present: 0 });
    assert.deepEqual(
      task.saved?.ranges.map(({ rows }) => rows),
      [250, 250, 250, 250],
    );
    assert.equal(task.saved?.verify, true, 'rows from before this process are looked up');
    assert.deepEqual(await drain(newTask()), { rows: 1000, present: 0 });
    assert.deepEqual(await drain(newTask()), { rows: 500, present: 0 });
    assert.deepEqual(await drain(newTask()), { rows: 0, present: 0 });
    await fillOutbox(redis, partitions, 2500, 2600);
    const trusted = newTask();
    assert.deepEqual(await drain(trusted), { rows: 100, present: 0 });
    assert.equal(trusted.saved?.verify, false);
    assert.deepEqual(await counts(client), allOnce(2600));
    assert.equal((await outbox.facts()).outboxLength, 0);
  });

  await t.test('bytes bound a block too', async (t) => {
    const { client, warehouse } = await setUp(t);
    await fillOutbox(redis, 1, 0, 5000);
    const drain = newDrain(warehouse, outbox, { maxRows: 5000, maxBytes: 200_000 });
    const { rows } = await drain(newTask());
    assert.ok(rows < 5000 && rows % 200 === 0, `${rows} rows`);
    while ((await drain(newTask())).rows > 0);
    assert.deepEqual(await counts(client), allOnce(5000));
  });

  await t.test('an attempt that died after the insert is repeated and counts once', async (t) => {
    const { client, warehouse } = await setUp(t);
    await fillOutbox(redis, partitions, 0, 300);
    const first = newTask();
    await assert.rejects(newDrain(warehouse, { ...outbox, trim: failing })(first), /cut here/);
    await fillOutbox(redis, partitions, 300, 400);
    assert.equal(
      (await newDrain(warehouse)(newTask(first.saved))).rows,
      300,
      'the same rows, not the newer ones',
    );
    assert.equal(
      (await newDrain(warehouse)(newTask(first.saved))).rows,
      0,
      'after the trim there is nothing to do',
    );
    await newDrain(warehouse)(newTask());
    assert.deepEqual(await counts(client), allOnce(400));
  });

  await t.test('a trim that reached some partitions only is finished by the retry', async (t) => {
    const { client, warehouse } = await setUp(t);
    await fillOutbox(redis, partitions, 0, 300);
    const first = newTask();
    const half: Outbox = {
      ...outbox,
      trim: (ranges) => outbox.trim(ranges.slice(0, 2)).then(failing),
    };
    await assert.rejects(newDrain(warehouse, half)(first), /cut here/);
    assert.deepEqual(await newDrain(warehouse)(newTask(first.saved)), { rows: 150, present: 150 });
    assert.deepEqual(await counts(client), allOnce(300));
  });

  await t.test('rows that came back with a Redis that lost its last second count once', async (t) => {
    const { client, warehouse } = await setUp(t);
    await fillOutbox(redis, partitions, 0, 600);
    const before = await Promise.all(all.map((partition) => redis.xrange(outboxKey(partition), '-', '+')));
    await newDrain(warehouse)(newTask());
    assert.equal((await outbox.facts()).outboxLength, 0);
    await Promise.all(all.map((partition) => redis.del(outboxKey(partition))));
    for (const partition of all) {
      for (const [id, fields] of before[partition] ?? [])
        await redis.xadd(outboxKey(partition), id, ...fields);
    }
    await fillOutbox(redis, partitions, 600, 700);
    assert.deepEqual(await newDrain(warehouse)(newTask()), { rows: 700, present: 600 });
    assert.deepEqual(await counts(client), allOnce(700));
  });

  await t.test('a block cut between table and rollup whose job was lost is made whole', async (t) => {
    const { client, warehouse } = await setUp(t);
    await fillOutbox(redis, partitions, 0, 500);
    await client.command({ query: 'ALTER TABLE daily_skill ADD CONSTRAINT fail CHECK attempts > 1000000' });
    await assert.rejects(newDrain(warehouse)(newTask()), /fail/);
    await client.command({ query: 'ALTER TABLE daily_skill DROP CONSTRAINT fail' });
    assert.notDeepEqual(await counts(client), allOnce(500));
    await fillOutbox(redis, partitions, 500, 800);
    assert.deepEqual(await newDrain(warehouse)(newTask()), { rows: 800, present: 500 });
    assert.deepEqual(await counts(client), allOnce(800));
  });

  await t.test('a batch older than the window of tokens is looked up first', async (t) => {
    const { client, warehouse } = await setUp(t);
    await fillOutbox(redis, partitions, 0, 200);
    const first = newTask();
    await assert.rejects(newDrain(warehouse, { ...outbox, trim: failing })(first), /cut here/);
    assert.ok(first.saved);
    const old = { ...first.saved, verify: false, fixedAt: first.saved.fixedAt - 86_400_000 };
    assert.deepEqual(await newDrain(warehouse)(newTask(old)), { rows: 200, present: 200 });
    assert.deepEqual(await counts(client), allOnce(200));
  });

  for (const table of filledTables) {
    await t.test(`a token that was noted without its part in ${table} costs no row`, async (t) => {
      const { client, warehouse } = await setUp(t);
      const drain = newDrain(warehouse);
      await drain(newTask());
      await fillOutbox(redis, partitions, 0, 400);
      // What a ClickHouse leaves that is killed between noting the token and moving the part into place.
      const killed: AttemptWarehouse = {
        ...warehouse,
        insert: async (...block) => {
          await warehouse.insert(...block);
          await client.command({ query: `ALTER TABLE ${table} DELETE WHERE 1 SETTINGS mutations_sync = 2` });
          await failing();
        },
      };
      const first = newTask();
      await assert.rejects(newDrain(killed)(first), /cut here/);
      await drain(newTask(first.saved));
      assert.deepEqual(await counts(client), allOnce(400));
      assert.equal((await outbox.facts()).outboxLength, 0);
    });
  }
});
