/** Old answers are dropped, and nothing that anybody reads of their sums changes, whatever ends in between. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import type { AttemptRow } from '../../src/contracts/answers/attempt-row.js';
import { encodeForecastRow } from '../../src/contracts/journal/journal.js';
import { type ReplayedStates, startReplay } from '../../src/domain/history/replay.js';
import {
  applyRetention,
  findLastOldMonth,
  planRetention,
  type RetentionDependencies,
} from '../../src/services/retention/apply-retention.js';
import { dumpLearner } from '../../src/store/learners/learner-dump.js';
import { decodeSnapshot } from '../../src/store/learners/learner-snapshot.js';
import { connectRedis, type RedisClient, waitUntilReady } from '../../src/store/redis/connection/client.js';
import {
  acceptedCountsKey,
  acceptedField,
  archiveFenceKey,
  outboxKey,
  parkedKey,
  partitionOf,
} from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { createJournalWarehouse } from '../../src/warehouse/ingest/journal-warehouse.js';
import { hasStoredState } from '../../src/warehouse/reads/stored-state.js';
import { rollups } from '../../src/warehouse/schema/rollups.js';
import { servedForecast } from '../support/builders/journal-rows.js';
import {
  arrivedIn,
  daysSinceThen,
  encoded,
  everyView,
  oldAnswers,
  partitions,
  partsOf,
  startOf,
  store,
} from '../support/builders/old-answers.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { countOf, testDatabase } from '../support/inspect/warehouse.js';
import { isLongForm } from '../support/runner/long-form.js';
import { freshDatabase, startTestRedis } from '../support/servers/embedded.js';

const february = 202602;
const dayMs = 86_400_000;
const personal = ['attempts', 'archived_learner_skill', 'learner_snapshots'];

const run = async (parts: RetentionDependencies, through = february): Promise<number[]> =>
  applyRetention(parts, await planRetention(parts, through));

/** Every row of `attempts` that there is, for all partitions. */
const within = (block: number) =>
  Array.from({ length: partitions }, (_, partition) => ({
    partition,
    from: `${block}-0`,
    to: `${block}-999999`,
    rows: 0,
  }));

async function redisOf(t: TestContext): Promise<RedisClient> {
  const redis = connectRedis(await startTestRedis(t));
  redis.on('error', () => {});
  t.after(() => redis.disconnect());
  await waitUntilReady(redis, 10_000);
  return redis;
}

const forget = (client: ClickHouseClient, userId: string): Promise<unknown[]> =>
  Promise.all(
    personal.map((table) =>
      client.command({
        query: `DELETE FROM ${table} WHERE user_id = {userId:String}`,
        query_params: { userId },
      }),
    ),
  );

const dump = (states: ReplayedStates): unknown => {
  const { records, items } = dumpLearner(states);
  const sorted = (fields: typeof records) =>
    fields.map(([field, value]) => `${field.toString('hex')} ${value.toString('hex')}`).sort();
  return [sorted(records), sorted(items[0]), sorted(items[1])];
};

function replayed(rows: readonly AttemptRow[], from: ReplayedStates | null = null): ReplayedStates {
  const replay = startReplay(from);
  for (const row of rows.toSorted((a, b) => a.figures.learnerSeq - b.figures.learnerSeq)) replay.add(row);
  assert.equal(replay.missing(), 0);
  return replay.states();
}

test('answers are old by whole months', () => {
  const at = (year: number, month: number, day: number) => Date.UTC(year, month - 1, day);
  assert.equal(findLastOldMonth(30, at(2026, 4, 1)), 202602);
  assert.equal(findLastOldMonth(30, at(2026, 4, 1) - 1), 202601);
  assert.equal(findLastOldMonth(29, at(2026, 4, 1) - 1), 202602);
  assert.equal(findLastOldMonth(365, at(2026, 1, 15)), 202412);
  assert.equal(findLastOldMonth(1, at(2026, 1, 2)), 202511);
});

test('retention', { timeout: 600_000 }, async (t) => {
  const { clickhouseUrl } = await freshDatabase();
  const redis = await redisOf(t);
  const rows = oldAnswers([1, 2, 3]);

  await t.test('drops the rows of old months, and every view stays what it was', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    await store(client, arrivedIn(rows, 1, 3));
    const before = await everyView(client);
    const parts = partsOf(client, redis);
    const { months } = await planRetention(parts, february);
    assert.deepEqual(
      months,
      [1, 2].map((month) => ({ month: 202600 + month, answers: arrivedIn(rows, month, month).length })),
    );
    assert.deepEqual(await run(parts), [202601, 202602]);
    assert.deepEqual(await everyView(client), before);
    assert.equal(await countOf(client, 'attempts'), arrivedIn(rows, 3, 3).length);
    assert.deepEqual(await run(parts), []);
    assert.deepEqual(await run(parts, 202603), [202603]);
    assert.deepEqual(await everyView(client), before);
    assert.equal(await countOf(client, 'attempts'), 0);
    assert.ok(await hasStoredState(client), 'an emptied Redis is not taken for new');
    assert.equal(await redis.zscore(archiveFenceKey(0), 'month'), '202603');
  });

  await t.test('a snapshot and the rows behind it give the states that all rows give', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    await store(client, rows);
    const parts = partsOf(client, redis);
    // Month by month: the second snapshot begins at the first.
    await run(parts, 202512);
    await run(parts, 202601);
    await run(parts, 202602);
    const rowsOf = (userId: string) => rows.filter(({ event }) => event.userId === userId);
    const snapshots = await selectRows<{
      user_id: string;
      tenant: string;
      learner_seq: number;
      state: string;
    }>(client, 'SELECT user_id, tenant, learner_seq, state FROM learner_snapshots FINAL');
    const learners = new Map(rows.map(({ event }) => [event.userId, rowsOf(event.userId)]));
    assert.equal(snapshots.length, learners.size);
    let reaching = 0;
    for (const { user_id, learner_seq, state } of snapshots) {
      const all = learners.get(user_id) ?? [];
      const newer = all.filter(({ figures }) => figures.learnerSeq > learner_seq);
      const dropped = arrivedIn(all, 0, 2).map(({ figures }) => figures.learnerSeq);
      assert.ok(learner_seq >= Math.max(...dropped));
      reaching += learner_seq > Math.max(...dropped) ? 1 : 0;
      assert.deepEqual(dump(replayed(newer, decodeSnapshot(state))), dump(replayed(all)), user_id);
    }
    assert.ok(reaching > 0, 'commits over the end of a month are not cut');
  });

  await t.test('a late answer of a dropped day, and the repair of that day', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    await store(client, rows);
    await run(partsOf(client, redis));
    const late = lateAnswer();
    const block = await store(client, [late]);
    const before = await everyView(client);
    const warehouse = createAttemptWarehouse(client);
    assert.deepEqual(await warehouse.repairRollups(within(block)), [], 'nothing differs');
    const { tenant, skillId } = late.event;
    for (const { table, keys } of rollups) {
      await client.command({
        query: `DELETE FROM ${table.name} WHERE tenant = {tenant:String}
          ${'skill_id' in keys ? 'AND skill_id = {skillId:String}' : ''} ${'day' in keys ? "AND day = '2026-01-06'" : ''}
          AND ${'user_id' in keys ? 'user_id = {userId:String}' : 'partition_id = {partition:UInt16}'}`,
        query_params: {
          tenant,
          skillId,
          userId: late.event.userId,
          partition: await partitionOfBlock(client, block),
        },
      });
    }
    assert.notDeepEqual(await everyView(client), before);
    assert.deepEqual(
      await warehouse.repairRollups(within(block)),
      rollups.map(({ table }) => table.name),
    );
    assert.deepEqual(await everyView(client), before);
  });

  await t.test('ended between any two steps, it goes on where it was', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    const block = await store(client, arrivedIn(rows, 1, 2));
    const before = await everyView(client);
    const parts = partsOf(client, redis);
    let failures = 0;
    for (let steps = 1; ; steps += isLongForm ? 1 : 4) {
      try {
        await run(failingAfter(parts, steps), 202601);
        break;
      } catch (error) {
        assert.match(String(error), /killed/);
        failures += 1;
      }
      assert.deepEqual(await everyView(client), before, `after ${steps} steps`);
      // Whoever repairs meanwhile sees each answer once.
      assert.deepEqual(await createAttemptWarehouse(client).repairRollups(within(block)), []);
    }
    assert.ok(failures > (isLongForm ? 10 : 2), `${failures} failures`);
    assert.deepEqual(await everyView(client), before);
    assert.equal(await countOf(client, 'attempts'), arrivedIn(rows, 2, 2).length);
  });

  await t.test('audits find nothing before and after, with what arrives late', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    await acceptRows(redis, rows);
    await store(client, rows);
    const audit = auditsOf(redis, client);
    const found = async () => {
      const { mismatches, notCompared } = await audit({ days: daysSinceThen() });
      return [namesOf(mismatches), notCompared];
    };
    assert.deepEqual(await found(), [[], []]);
    await run(partsOf(client, redis));
    assert.deepEqual(await found(), [[], []]);
    const late = lateAnswer();
    await acceptRows(redis, [late]);
    await store(client, [late]);
    assert.deepEqual(await found(), [[], []]);
    await client.command({ query: "DELETE FROM daily_skill WHERE day = '2026-01-06'" });
    assert.notDeepEqual(await found(), [[], []], 'a rollup that lacks what is archived is found');
    await redis.del(...Array.from({ length: partitions }, (_, partition) => acceptedCountsKey(partition)));
  });

  await t.test('two processes at once', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    await store(client, rows);
    const before = await everyView(client);
    const parts = partsOf(client, redis);
    await Promise.all([run(parts), run(parts), run(parts)]);
    await run(parts);
    assert.deepEqual(await everyView(client), before);
    assert.equal(await countOf(client, 'attempts'), arrivedIn(rows, 3, 3).length);
  });

  await t.test('a learner who is erased meanwhile leaves nothing behind', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    await store(client, rows);
    const parts = partsOf(client, redis);
    const { archive } = parts;
    const [first, second] = [...new Set(rows.map(({ event }) => event.userId))] as [string, string];
    // Both lists were made of rows that are gone when they are written.
    await run({
      ...parts,
      archive: {
        ...archive,
        saveSnapshots: async (month, snapshots) => {
          await archive.saveSnapshots(month, snapshots);
          await forget(client, first);
          await archive.saveSnapshots(
            month,
            snapshots.filter(({ userId }) => userId === first),
          );
        },
        saveSums: async (month, page) => {
          await archive.saveSums(month, page);
          await client.command({
            query: 'DELETE FROM attempts WHERE user_id = {second:String}',
            query_params: { second },
          });
        },
      },
    });
    for (const table of personal) {
      const left = await selectRows(
        client,
        `SELECT 1 FROM ${table} WHERE user_id IN ({first:String}, {second:String})`,
        { params: { first, second } },
      );
      assert.deepEqual(left, [], table);
    }
    assert.equal((await selectRows(client, 'SELECT DISTINCT user_id FROM learner_snapshots')).length, 10);
  });

  await t.test('waits for rows that are still on their way', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    await store(client, arrivedIn(rows, 1, 3));
    const stored = await countOf(client, 'attempts');
    const parts = partsOf(client, redis);
    const waiting = await redis.xadd(outboxKey(1), '*', 'r', 'row');
    assert.ok(waiting);
    assert.deepEqual(await run(parts), []);
    await redis.xdel(outboxKey(1), waiting);
    const [old] = arrivedIn(rows, 2, 2);
    const [young] = arrivedIn(rows, 3, 3);
    assert.ok(old && young);
    for (const row of [encoded(old), 'unreadable']) {
      const parked = await redis.xadd(parkedKey(outboxKey(2)), '*', 'r', row, 'reason', 'refused');
      assert.ok(parked);
      assert.deepEqual(await run(parts), row === 'unreadable' ? [] : [202601]);
      await redis.xdel(parkedKey(outboxKey(2)), parked);
    }
    await redis.xadd(parkedKey(outboxKey(2)), '*', 'r', encoded(young), 'reason', 'refused');
    assert.deepEqual(await run(parts), [202602]);
    assert.ok((await countOf(client, 'attempts')) < stored);
    await redis.del(parkedKey(outboxKey(2)), outboxKey(1));
  });

  await t.test('forecasts go when the last of their days is over', async (t) => {
    const { client } = await testDatabase(t, clickhouseUrl);
    const scored = servedForecast({ madeAt: startOf(1) + dayMs, days: 7 });
    const open = servedForecast({ madeAt: startOf(2) + dayMs, days: 36_500 });
    await createJournalWarehouse(client).insert(
      'forecast',
      [scored, { ...scored, days: 30 }, open].map((row) => Buffer.from(encodeForecastRow(row))),
    );
    const parts = partsOf(client, redis);
    assert.deepEqual(await planRetention(parts, february), { months: [], forecastMonths: [202601] });
    await run(parts);
    assert.equal(await countOf(client, 'forecasts'), 1);
  });
});

/** Arrives in March, of a day in January. */
function lateAnswer(): AttemptRow {
  const [row] = oldAnswers([3]);
  assert.ok(row);
  const occurredAt = startOf(1) + 5 * dayMs;
  return {
    ...row,
    event: { ...row.event, userId: 'a late one', occurredAt, receivedAt: startOf(3) + dayMs },
  };
}

/** Counts the rows as commits do. */
async function acceptRows(redis: RedisClient, rows: readonly AttemptRow[]): Promise<void> {
  for (const { event } of rows) {
    const { tenant, userId, receivedAt } = event;
    const field = acceptedField(tenant, Math.floor(receivedAt / dayMs));
    await redis.hincrby(acceptedCountsKey(partitionOf(tenant, userId, partitions)), field, 1);
  }
}

async function partitionOfBlock(client: ClickHouseClient, block: number): Promise<number> {
  const query = `SELECT partition_id FROM attempts WHERE outbox_ms = ${block}`;
  const [row] = await selectRows<{ partition_id: number }>(client, query);
  return row?.partition_id ?? -1;
}

/** The process ends after so many calls. */
function failingAfter(parts: RetentionDependencies, calls: number): RetentionDependencies {
  let left = calls;
  const failing = <Port extends object>(port: Port): Port =>
    new Proxy(port, {
      get:
        (target, name) =>
        async (...given: unknown[]) => {
          if (left-- <= 0) throw new Error('killed');
          const call = Reflect.get(target, name) as (...given: unknown[]) => unknown;
          return call(...given);
        },
    });
  const { archive, fence, partitions, logger } = parts;
  return {
    archive: failing(archive),
    fence: failing(fence),
    partitions,
    logger,
  };
}
