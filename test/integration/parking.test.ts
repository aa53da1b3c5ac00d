/** Rows that ClickHouse refuses: put aside one by one, in the way of no other, never dropped. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import type { Redis } from 'ioredis';
import type { PinnedBlock } from '../../src/contracts/outbox/job-data.js';
import { createLogger } from '../../src/logger.js';
import type { DrainTask } from '../../src/services/outbox/complete-block.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { createParkedRows, type RedriveCounts, redrive } from '../../src/store/corrections/redrive.js';
import { createOutbox, type Outbox } from '../../src/store/outbox/outbox.js';
import {
  dueErasuresKey,
  journalKey,
  maxParkedRows,
  metaKey,
  outboxKey,
  outboxRowCountKey,
  parkedKey,
} from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import {
  type AttemptWarehouse,
  createAttemptWarehouse,
} from '../../src/warehouse/ingest/attempt-warehouse.js';
import { encodedRow, fillOutbox } from '../support/builders/attempt-rows.js';
import { runCommand } from '../support/commands/command.js';
import { allOnce, counts, testDatabase } from '../support/inspect/warehouse.js';
import { isLongForm } from '../support/runner/long-form.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const partitions = 2;
const all = [0, 1];
const logger = createLogger('fatal', 'test');

const newTask = (batch: PinnedBlock | null = null): DrainTask & { saved: PinnedBlock | null } => {
  const task = {
    partitions: all,
    batch,
    saved: batch,
    save: async (fixed: PinnedBlock) => {
      task.saved = fixed;
    },
  };
  return task;
};

test('parking', { timeout: 900_000 }, async (t) => {
  const [redisUrl, { clickhouseUrl }] = await Promise.all([startTestRedis(t), freshDatabase()]);
  const redis = (await redisOf(t, redisUrl)) as Redis;
  const outbox = createOutbox(redis, partitions);

  const newDrain = (warehouse: AttemptWarehouse, box: Outbox = outbox) =>
    createDrain({ outbox: box, warehouse, logger, limits: { maxRows: 1000, maxBytes: 2 ** 30 } });

  async function setUp(t: Parameters<typeof testDatabase>[0]) {
    const { client } = await testDatabase(t, clickhouseUrl);
    await Promise.all(all.map((p) => redis.del(outboxKey(p), outboxRowCountKey(p), parkedKey(outboxKey(p)))));
    return { client, warehouse: createAttemptWarehouse(client) };
  }

  /** Rows of every kind that no table takes. @returns how many */
  async function addBroken(partition: number): Promise<number> {
    const row = encodedRow(1);
    const fields = row.split('\t');
    const broken = [
      fields.with(5, 'perhaps').join('\t'),
      fields.slice(0, 7).join('\t'),
      `${row}\tone more`,
      Buffer.from([0xff, 0xfe, 0x09, 0x00]),
      '',
    ];
    for (const bad of broken) await redis.xadd(outboxKey(partition), '*', 'r', bad);
    await redis.xadd(outboxKey(partition), '*', 'other', 'field');
    return broken.length + 1;
  }

  /** Parked entries of a partition by field. */
  const parkedOf = async (partition: number): Promise<Record<string, string>[]> =>
    (await redis.xrange(parkedKey(outboxKey(partition)), '-', '+')).map(([, fields]) =>
      Object.fromEntries(fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1] as string]] : []))),
    );

  const assertParked = async (client: ClickHouseClient, stored: number, parked: number): Promise<void> => {
    const facts = await outbox.facts();
    assert.deepEqual([facts.outboxLength, facts.parked], [0, parked]);
    assert.deepEqual(await counts(client), allOnce(stored));
  };

  await t.test('broken rows are put aside with the reason, good ones around them are stored', async (t) => {
    const { client, warehouse } = await setUp(t);
    const drain = newDrain(warehouse);
    await drain(newTask());
    await fillOutbox(redis, partitions, 0, 30);
    const broken = await addBroken(1);
    await fillOutbox(redis, partitions, 30, 70);
    await drain(newTask());
    await assertParked(client, 70, broken);
    const parked = await parkedOf(1);
    assert.ok(parked.every(({ id, reason }) => /^\d+-\d+$/.test(id ?? '') && /^[A-Z_]+$/.test(reason ?? '')));
    assert.equal(
      parked.find(({ r }) => r?.includes('perhaps'))?.reason,
      'CANNOT_PARSE_INPUT_ASSERTION_FAILED',
    );
    assert.equal(parked.filter(({ reason }) => reason === 'NO_ROW').length, 2);
    assert.ok(
      parked.some(({ other }) => other === 'field'),
      'as it was',
    );
  });

  await t.test(
    'of an entry the good rows are stored and the others put aside, each with its own id',
    async (t) => {
      const { client, warehouse } = await setUp(t);
      const rows = Array.from({ length: 6 }, (_, i) => encodedRow(i));
      const bad = [1, 4].map((i) => (rows[i] as string).split('\t').with(5, 'perhaps').join('\t'));
      const entry = [rows[0], bad[0], rows[2], rows[3], bad[1], '', rows[5]].join('\n');
      const [ms, seq] = ((await redis.xadd(outboxKey(1), '*', 'r', entry)) ?? '').split('-');
      const { rows: stored } = await newDrain(warehouse)(newTask());
      assert.deepEqual([stored, await redis.exists(outboxKey(1))], [4, 1]);
      const found = await selectRows<{ seq: string; event_id: string }>(
        client,
        'SELECT outbox_seq AS seq, event_id FROM attempts ORDER BY outbox_seq',
      );
      const idOf = (place: number): number => Number(seq) * 65_536 + place;
      assert.deepEqual(
        found.map((row) => [Number(row.seq), row.event_id]),
        [0, 2, 3, 6].map((place) => [idOf(place), `event-${place === 6 ? 5 : place}`]),
      );
      assert.deepEqual(
        (await parkedOf(1)).map(({ id, r }) => [id, r]),
        [
          [`${ms}-${idOf(1)}`, bad[0]],
          [`${ms}-${idOf(4)}`, bad[1]],
          [`${ms}-${idOf(5)}`, ''],
        ],
      );
      assert.deepEqual((await outbox.facts()).outboxLength, 0);
    },
  );

  await t.test('a row that the table itself refuses is found as well', async (t) => {
    const { client, warehouse } = await setUp(t);
    await client.command({ query: "ALTER TABLE attempts ADD CONSTRAINT no CHECK event_id != 'event-13'" });
    await fillOutbox(redis, partitions, 0, 50);
    const { rows } = await newDrain(warehouse)(newTask());
    assert.equal(rows, 49);
    await assertParked(client, 49, 1);
    assert.equal((await parkedOf(1))[0]?.reason, 'VIOLATED_CONSTRAINT');
  });

  await t.test(
    'a whole block that is refused is parked, up to the bound; what is beyond waits',
    async (t) => {
      const { client, warehouse } = await setUp(t);
      await client.command({ query: 'ALTER TABLE attempts ADD CONSTRAINT no CHECK partition_id != 1' });
      await fillOutbox(redis, partitions, 0, 12);
      await newDrain(warehouse)(newTask());
      await assertParked(client, 6, 6);
      const pipeline = redis.pipeline();
      for (let i = 6; i < maxParkedRows - 3; i++) pipeline.xadd(parkedKey(outboxKey(1)), '*', 'r', 'x');
      await pipeline.exec();
      await fillOutbox(redis, partitions, 12, 24);
      const task = newTask();
      await assert.rejects(newDrain(warehouse)(task), /no more rows can be parked of partition 1/);
      const { outboxLength, parked, fullyParked } = await outbox.facts();
      assert.deepEqual(
        [outboxLength, parked, fullyParked],
        [2, maxParkedRows + 1, 1],
        'an entry stays whole',
      );
      assert.deepEqual(await counts(client), allOnce(12), 'the other partition goes on');
      await client.command({ query: 'ALTER TABLE attempts DROP CONSTRAINT no' });
      await newDrain(warehouse)(newTask(task.saved));
      await newDrain(warehouse)(newTask());
      assert.deepEqual(await counts(client), allOnce(14), 'what waited is stored when the cause is mended');
    },
  );

  for (const [what, spoil, mend, code] of [
    ['table', 'RENAME TABLE attempts TO elsewhere', 'RENAME TABLE elsewhere TO attempts', '60'],
    [
      'column',
      'ALTER TABLE attempts RENAME COLUMN weight TO heaviness',
      'ALTER TABLE attempts RENAME COLUMN heaviness TO weight',
      '16',
    ],
  ] as const) {
    await t.test(`a ${what} that is missing is no fault of the rows: they wait`, async (t) => {
      const { client, warehouse } = await setUp(t);
      const drain = newDrain(warehouse);
      await drain(newTask());
      await fillOutbox(redis, partitions, 0, 50);
      await client.command({ query: spoil });
      const task = newTask();
      await assert.rejects(drain(task), { code });
      assert.deepEqual((await outbox.facts()).outboxLength, 50);
      await client.command({ query: mend });
      await drain(newTask(task.saved));
      await assertParked(client, 50, 0);
    });
  }

  await t.test('killed at any step, nothing is lost and nothing counts twice', async (t) => {
    const { client, warehouse } = await setUp(t);
    let stored = 0;
    let parked = 0;
    const fill = async (): Promise<void> => {
      await fillOutbox(redis, partitions, stored, stored + 2);
      await redis.xadd(outboxKey(0), '*', 'r', `broken\n${encodedRow(stored + 2)}\nbroken too`);
      await redis.xadd(outboxKey(0), '*', 'other', 'field');
      await fillOutbox(redis, partitions, stored + 3, stored + 5);
      stored += 5;
      parked += 3;
    };
    for (let step = 0, died = true; died; step += isLongForm ? 1 : 2) {
      await fill();
      let steps = 0;
      const dying =
        <Arguments extends unknown[], Value>(work: (...given: Arguments) => Promise<Value>) =>
        async (...given: Arguments): Promise<Value> => {
          const [done] = await Promise.allSettled([work(...given)]);
          if (steps++ === step) throw new Error('killed here');
          if (done?.status !== 'fulfilled') throw done?.reason;
          return done.value;
        };
      const [trim, park, parkRows] = [dying(outbox.trim), dying(outbox.park), dying(outbox.parkRows)];
      const box = { ...outbox, trim, park, parkRows };
      const task = newTask();
      const first = newDrain({ ...warehouse, insert: dying(warehouse.insert) }, box);
      died = await first({ ...task, save: dying(task.save) }).then(
        () => false,
        (error: Error) => error.message === 'killed here',
      );
      const second = newDrain(warehouse);
      await second(newTask(task.saved));
      while ((await second(newTask())).rows > 0);
      await assertParked(client, stored, parked);
    }
  });

  await t.test(
    'rows that an earlier attempt stored leave, and only the rest is looked through',
    async (t) => {
      const { client, warehouse } = await setUp(t);
      const drain = newDrain(warehouse);
      await drain(newTask());
      await fillOutbox(redis, partitions, 0, 100);
      const first = newTask();
      const noTrim: Outbox = { ...outbox, trim: () => Promise.reject(new Error('cut here')) };
      await assert.rejects(newDrain(warehouse, noTrim)(first), /cut here/);
      // What a restored Redis may have beside what was stored: a row within the fixed range.
      const [before] = (await redis.xrange(outboxKey(0), '-', '+')).at(-1) ?? [];
      const end = first.saved?.ranges.find(({ partition }) => partition === 0);
      assert.ok(before && end);
      await redis.xadd(outboxKey(0), '*', 'r', 'broken');
      const [last] = (await redis.xrange(outboxKey(0), '-', '+')).at(-1) ?? [];
      assert.ok(first.saved && last);
      const ranges = first.saved.ranges.map((range) =>
        range.partition === 0 ? { ...range, to: last } : range,
      );
      await drain(newTask({ ...first.saved, ranges }));
      await assertParked(client, 100, 1);
    },
  );

  await t.test('a rollup that refuses is not the row: it is stored, and the error is told', async (t) => {
    const { client, warehouse } = await setUp(t);
    const drain = newDrain(warehouse);
    await drain(newTask());
    await client.command({ query: 'ALTER TABLE daily_skill ADD CONSTRAINT fail CHECK attempts > 1000000' });
    await fillOutbox(redis, partitions, 0, 20);
    const task = newTask();
    await assert.rejects(drain(task), /fail/);
    assert.deepEqual([(await outbox.facts()).outboxLength, (await outbox.facts()).parked], [20, 0]);
    await client.command({ query: 'ALTER TABLE daily_skill DROP CONSTRAINT fail' });
    await drain(newTask(task.saved));
    await assertParked(client, 20, 0);
  });

  await t.test('redriven rows are stored as if nothing had been, whoever redrives them', async (t) => {
    const { client, warehouse } = await setUp(t);
    await redis.hset(metaKey, 'partitions', partitions);
    const drain = newDrain(warehouse);
    await drain(newTask());
    await client.command({ query: 'ALTER TABLE attempts ADD CONSTRAINT no CHECK partition_id != 1' });
    await fillOutbox(redis, partitions, 0, 10);
    await redis.xadd(outboxKey(1), '*', 'other', 'field');
    await drain(newTask());
    await assertParked(client, 5, 6);
    const parked = createParkedRows(redis);
    const streams = await parked.listStreams(1);
    const redriveAll = () => Promise.all(streams.map((stream) => redrive(redis, stream)));
    const movedBy = (outcomes: readonly RedriveCounts[]) =>
      outcomes.reduce((sum, { moved }) => sum + moved, 0);
    assert.equal(movedBy(await redriveAll()), 6);
    await drain(newTask());
    await assertParked(client, 5, 6);
    await client.command({ query: 'ALTER TABLE attempts DROP CONSTRAINT no' });
    const both = await Promise.all([redriveAll(), redriveAll()]);
    assert.equal(movedBy(both.flat()), 6, 'two at once move each row once');
    await drain(newTask());
    await assertParked(client, 10, 1);
    const left = [];
    for await (const entry of parked.listEntries([outboxKey(1)])) left.push(entry);
    assert.deepEqual(
      left.map(({ stream, tenant, reason }) => [stream, tenant, reason]),
      [[outboxKey(1), null, 'NO_ROW']],
    );
  });

  await t.test('the command lists what is parked without learners, and puts it back', async (t) => {
    await setUp(t);
    await redis.hset(metaKey, 'partitions', partitions);
    const row = encodedRow(3);
    const park = (stream: string, ...fields: string[]) =>
      redis.xadd(parkedKey(stream), '*', 'id', '5-0', 'reason', 'CANNOT_PARSE_NUMBER', ...fields);
    await park(outboxKey(0), 'r', row);
    await park(journalKey(1), 'k', 'goal', 'r', '1\tschool\tlearner-3\t1200\t\\N');
    const run = (...args: string[]) =>
      runCommand('parked', { REDIS_URL: redisUrl, CLICKHOUSE_URL: clickhouseUrl }, ...args);
    const { out } = await run('list', '--json');
    assert.deepEqual(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .map(({ stream, id, tenant, reason }) => [stream, id, tenant, reason]),
      [
        [outboxKey(0), '5-0', 'default', 'CANNOT_PARSE_NUMBER'],
        [journalKey(1), '5-0', 'school', 'CANNOT_PARSE_NUMBER'],
      ],
    );
    assert.doesNotMatch(out, /learner-3/);
    assert.equal((await run('list', '--partition', '1')).out.trim().split('\n').length, 2);
    assert.equal((await run('redrive')).out, 'put back 2\n');
    assert.deepEqual(
      (await redis.xrange(outboxKey(0), '-', '+')).map(([, fields]) => fields),
      [['r', row]],
    );
    assert.equal((await outbox.facts()).parked, 0);
    await redis.del(journalKey(1));
    assert.match((await run('--help')).out, /redrive/);
    assert.match((await run('drop')).err, /list or redrive is needed/);
  });
});

test('nothing is put back behind a correction that waits', { timeout: 600_000 }, async (t) => {
  const redis = await redisOf(t, await startTestRedis(t));
  const stream = outboxKey(0);
  await redis.xadd(parkedKey(stream), '*', 'id', '5-0', 'reason', 'CANNOT_PARSE_NUMBER', 'r', 'row');
  const addRows = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) await redis.xadd(stream, '*', 'r', 'other');
  };
  await addRows(450);
  const correction = await redis.xadd(stream, '*', 'c', '{}');
  await addRows(10);
  assert.ok(correction);
  assert.deepEqual(await redrive(redis, stream), { moved: 0, stayed: 1, erased: 0 });
  await redis.xdel(stream, correction);
  await redis.xadd(dueErasuresKey(0), correction, 'c', '{}');
  assert.deepEqual(await redrive(redis, stream), { moved: 0, stayed: 1, erased: 0 }, 'one that is due');
  await redis.xdel(dueErasuresKey(0), correction);
  assert.deepEqual(await redrive(redis, stream), { moved: 1, stayed: 0, erased: 0 });
  const [last] = await redis.xrevrange(stream, '+', '-', 'COUNT', 1);
  assert.deepEqual(last?.[1], ['r', 'row']);
});
