/** Retention: old answers become sums, and no view of them changes, also if a run ends between two steps. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import type { Redis } from 'ioredis';
import type { AttemptRow } from '../../src/contracts/answers/attempt-row.js';
import { encodeForecastRow } from '../../src/contracts/journal/journal.js';
import { type ReplayedStates, startReplay } from '../../src/domain/history/replay.js';
import { distinct, indices } from '../../src/lists.js';
import {
  applyRetention,
  findLastOldMonth,
  planRetention,
  type RetentionDependencies,
} from '../../src/services/retention/apply-retention.js';
import { dumpLearner } from '../../src/store/learners/learner-dump.js';
import { decodeSnapshot } from '../../src/store/learners/learner-snapshot.js';
import { describeDifference } from '../../src/store/rebuild/learner-writes.js';
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
import { countOf, emptyTables, fileDatabase } from '../support/inspect/warehouse.js';
import { isLongForm } from '../support/runner/long-form.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const february = 202602;
const dayMs = 86_400_000;
const personalTables = ['attempts', 'archived_learner_skill', 'learner_snapshots'];

const { client } = await fileDatabase({ after });
const redis = (await redisOf({ after }, await startTestRedis({ after }))) as Redis;
const parts = partsOf(client, redis);
const warehouse = createAttemptWarehouse(client);
const rows = oldAnswers([1, 2, 3]);

beforeEach(async () => {
  await emptyTables(client);
  await redis.flushall();
});

const run = async (through = february, dependencies = parts): Promise<number[]> =>
  applyRetention(dependencies, await planRetention(dependencies, through));

/** The ranges of a block in all partitions. */
const rangesOf = (block: number) =>
  indices(partitions).map((partition) => ({ partition, from: `${block}-0`, to: `${block}-999999`, rows: 0 }));

const deleteFrom = (table: string, userId: string): Promise<unknown> =>
  client.command({
    query: `DELETE FROM ${table} WHERE user_id = {userId:String}`,
    query_params: { userId },
  });

function replayRows(answers: readonly AttemptRow[], from: ReplayedStates | null = null): ReplayedStates {
  const replay = startReplay(from);
  for (const row of answers.toSorted((a, b) => a.figures.learnerSeq - b.figures.learnerSeq)) replay.add(row);
  assert.equal(replay.missing(), 0);
  return replay.states();
}

/** An answer of a day in January that arrives in March. */
function lateAnswer(): AttemptRow {
  const [row] = oldAnswers([3]);
  assert.ok(row);
  const times = { occurredAt: startOf(1) + 5 * dayMs, receivedAt: startOf(3) + dayMs };
  const conditions = { ...row.conditions, localDay: Math.floor(times.occurredAt / dayMs) };
  return { ...row, conditions, event: { ...row.event, userId: 'late', ...times } };
}

/** Counts the rows as commits do. */
async function countAccepted(answers: readonly AttemptRow[]): Promise<void> {
  for (const { event } of answers) {
    const { tenant, userId, receivedAt } = event;
    const field = acceptedField(tenant, Math.floor(receivedAt / dayMs));
    await redis.hincrby(acceptedCountsKey(partitionOf(tenant, userId, partitions)), field, 1);
  }
}

/** Throws after so many calls of the archive and the fence. */
function failAfter(calls: number): RetentionDependencies {
  let left = calls;
  const failing = <Port extends object>(port: Port): Port =>
    new Proxy(port, {
      get:
        (target, name) =>
        async (...given: unknown[]) => {
          if (left-- <= 0) throw new Error('crash');
          const call = Reflect.get(target, name) as (...given: unknown[]) => unknown;
          return call(...given);
        },
    });
  return { ...parts, archive: failing(parts.archive), fence: failing(parts.fence) };
}

test('findLastOldMonth returns the last month of which every day is old', () => {
  const at = (year: number, month: number, day: number) => Date.UTC(year, month - 1, day);
  assert.equal(findLastOldMonth(30, at(2026, 4, 1)), 202602);
  assert.equal(findLastOldMonth(30, at(2026, 4, 1) - 1), 202601);
  assert.equal(findLastOldMonth(29, at(2026, 4, 1) - 1), 202602);
  assert.equal(findLastOldMonth(365, at(2026, 1, 15)), 202412);
  assert.equal(findLastOldMonth(1, at(2026, 1, 2)), 202511);
});

test('Retention drops the answers of old months, and every view stays the same', async () => {
  await store(client, arrivedIn(rows, 1, 3));
  const before = await everyView(client);
  const [january, ...others] = (await planRetention(parts, february)).months;
  assert.deepEqual(january, { month: 202601, answers: arrivedIn(rows, 1, 1).length });
  assert.deepEqual(others, [{ month: february, answers: arrivedIn(rows, 2, 2).length }]);
  assert.deepEqual(await run(), [202601, 202602]);
  assert.deepEqual(await everyView(client), before);
  assert.equal(await countOf(client, 'attempts'), arrivedIn(rows, 3, 3).length);
  assert.deepEqual(await run(), []);
  assert.deepEqual(await run(202603), [202603]);
  assert.deepEqual(await everyView(client), before);
  assert.equal(await countOf(client, 'attempts'), 0);
  assert.ok(await hasStoredState(client), 'the archive alone is no stored state');
  assert.equal(await redis.zscore(archiveFenceKey(0), 'month'), '202603');
});

test('A learner snapshot with the newer rows replays to the same states as all rows', async () => {
  await store(client, rows);
  // Month by month, because the second snapshot starts from the first.
  for (const month of [202512, 202601, february]) await run(month);
  const snapshots = await selectRows<{ user_id: string; learner_seq: number; state: string }>(
    client,
    'SELECT user_id, learner_seq, state FROM learner_snapshots FINAL',
  );
  assert.equal(snapshots.length, distinct(rows.map(({ event }) => event.userId)).length);
  let spanning = 0;
  for (const { user_id, learner_seq, state } of snapshots) {
    const all = rows.filter(({ event }) => event.userId === user_id);
    const newer = all.filter(({ figures }) => figures.learnerSeq > learner_seq);
    const lastDropped = Math.max(...arrivedIn(all, 0, 2).map(({ figures }) => figures.learnerSeq));
    assert.ok(learner_seq >= lastDropped);
    spanning += learner_seq > lastDropped ? 1 : 0;
    const continued = replayRows(newer, decodeSnapshot(state));
    assert.equal(describeDifference(continued, dumpLearner(replayRows(all))), null, user_id);
  }
  assert.ok(spanning > 0, 'no snapshot includes the rest of a commit');
});

test('repairRollups recomputes a day whose answers are archived, with a late answer', async () => {
  await store(client, rows);
  await run();
  const late = lateAnswer();
  const block = await store(client, [late]);
  const before = await everyView(client);
  assert.deepEqual(await warehouse.repairRollups(rangesOf(block)), [], 'nothing differs');
  const { tenant, skillIds, userId } = late.event;
  const [skillId] = skillIds;
  const query_params = { tenant, skillId, userId, partition: partitionOf(tenant, userId, partitions) };
  for (const { table, keys } of rollups) {
    const query = `DELETE FROM ${table.name} WHERE tenant = {tenant:String}
      ${'skill_id' in keys ? 'AND skill_id = {skillId:String}' : ''} ${'day' in keys ? "AND day = '2026-01-06'" : ''}
      AND ${'user_id' in keys ? 'user_id = {userId:String}' : 'partition_id = {partition:UInt16}'}`;
    await client.command({ query, query_params });
  }
  assert.notDeepEqual(await everyView(client), before);
  const names = rollups.map(({ table }) => table.name);
  assert.deepEqual(await warehouse.repairRollups(rangesOf(block)), names);
  assert.deepEqual(await everyView(client), before);
});

test('A retention run that crashed between two steps continues in the next run', async () => {
  // The long form crashes after each step, `npm test` after every fourth.
  const block = await store(client, arrivedIn(rows, 1, 2));
  const before = await everyView(client);
  let failures = 0;
  for (let steps = 1; ; steps += isLongForm ? 1 : 4) {
    try {
      await run(202601, failAfter(steps));
      break;
    } catch (error) {
      assert.match(String(error), /crash/);
      failures += 1;
    }
    assert.deepEqual(await everyView(client), before, `after ${steps} steps`);
    // A repair between two runs counts each answer once.
    assert.deepEqual(await warehouse.repairRollups(rangesOf(block)), []);
  }
  assert.ok(failures > (isLongForm ? 10 : 2), `${failures} failures`);
  assert.deepEqual(await everyView(client), before);
  assert.equal(await countOf(client, 'attempts'), arrivedIn(rows, 2, 2).length);
});

test('Audits find no difference before and after retention, also with late answers', async () => {
  await countAccepted(rows);
  await store(client, rows);
  const audit = auditsOf(redis, client);
  const found = async () => {
    const { mismatches, notCompared } = await audit({ days: daysSinceThen() });
    return [namesOf(mismatches), notCompared];
  };
  assert.deepEqual(await found(), [[], []]);
  await run();
  assert.deepEqual(await found(), [[], []]);
  const late = lateAnswer();
  await countAccepted([late]);
  await store(client, [late]);
  assert.deepEqual(await found(), [[], []]);
  await client.command({ query: "DELETE FROM daily_skill WHERE day = '2026-01-06'" });
  assert.notDeepEqual(await found(), [[], []], 'the audit misses the archived answers');
});

test('Concurrent retention runs archive each answer once', async () => {
  await store(client, rows);
  const before = await everyView(client);
  await Promise.all([run(), run(), run()]);
  await run();
  assert.deepEqual(await everyView(client), before);
  assert.equal(await countOf(client, 'attempts'), arrivedIn(rows, 3, 3).length);
});

test('Retention keeps no row of a learner who is erased during the run', async () => {
  await store(client, rows);
  const { archive } = parts;
  const [first, second] = distinct(rows.map(({ event }) => event.userId)) as [string, string];
  // The erasure deletes rows that the run has read, before it writes their snapshots and sums.
  await run(february, {
    ...parts,
    archive: {
      ...archive,
      saveSnapshots: async (month, snapshots) => {
        await archive.saveSnapshots(month, snapshots);
        for (const table of personalTables) await deleteFrom(table, first);
        const erased = snapshots.filter(({ userId }) => userId === first);
        await archive.saveSnapshots(month, erased);
      },
      saveSums: async (month, page) => {
        await archive.saveSums(month, page);
        await deleteFrom('attempts', second);
      },
    },
  });
  for (const table of personalTables) {
    const query = `SELECT 1 FROM ${table} WHERE user_id IN ({first:String}, {second:String})`;
    assert.deepEqual(await selectRows(client, query, { params: { first, second } }), [], table);
  }
  assert.equal((await selectRows(client, 'SELECT DISTINCT user_id FROM learner_snapshots')).length, 4);
});

test('Retention waits for pending rows and for dead letters of the month', async () => {
  await store(client, arrivedIn(rows, 1, 3));
  const stored = await countOf(client, 'attempts');
  const waiting = await redis.xadd(outboxKey(1), '*', 'r', 'row');
  assert.ok(waiting);
  assert.deepEqual(await run(), []);
  await redis.xdel(outboxKey(1), waiting);
  const [[old], [young]] = [arrivedIn(rows, 2, 2), arrivedIn(rows, 3, 3)];
  assert.ok(old && young);
  for (const row of [encoded(old), 'unreadable']) {
    const parked = await redis.xadd(parkedKey(outboxKey(2)), '*', 'r', row, 'reason', 'refused');
    assert.ok(parked);
    assert.deepEqual(await run(), row === 'unreadable' ? [] : [202601]);
    await redis.xdel(parkedKey(outboxKey(2)), parked);
  }
  await redis.xadd(parkedKey(outboxKey(2)), '*', 'r', encoded(young), 'reason', 'refused');
  assert.deepEqual(await run(), [202602]);
  assert.ok((await countOf(client, 'attempts')) < stored);
});

test('Retention drops forecasts after the last of their days', async () => {
  const scored = servedForecast({ madeAt: startOf(1) + dayMs, days: 7 });
  const open = servedForecast({ madeAt: startOf(2) + dayMs, days: 36_500 });
  const forecasts = [scored, { ...scored, days: 30 }, open].map((row) => Buffer.from(encodeForecastRow(row)));
  await createJournalWarehouse(client).insert('forecast_2', forecasts);
  assert.deepEqual(await planRetention(parts, february), { months: [], forecastMonths: [202601] });
  await run();
  assert.equal(await countOf(client, 'forecasts'), 1);
});
