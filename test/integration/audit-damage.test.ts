/** Differences that an audit reports, and states that are no difference or cannot be decided. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import type { Redis } from 'ioredis';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { auditAndRecord } from '../../src/services/audit/run-audit.js';
import { createDrain } from '../../src/services/outbox/drain-outbox.js';
import { createAuditStore, loadLastAudit } from '../../src/store/audit/audit-store.js';
import { createOutbox } from '../../src/store/outbox/outbox.js';
import {
  acceptedCountsKey,
  acceptedField,
  outboxKey,
  outboxRowCountKey,
  parkedKey,
  partitionOf,
  removedCountsKey,
} from '../../src/store/redis/keys.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { createAuditWarehouse } from '../../src/warehouse/maintenance/audit-warehouse.js';
import { attemptRow, encoded, encodedRows } from '../support/builders/attempt-rows.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { emptyTables, fileDatabase } from '../support/inspect/warehouse.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const partitions = 16;
const dayMs = 86_400_000;
const logger = createLogger('silent', 'test');

const { client } = await fileDatabase({ after });
const redis = (await redisOf({ after }, await startTestRedis({ after }))) as Redis;
const warehouse = createAttemptWarehouse(client);
const outbox = createOutbox(redis, partitions);
const runAudit = auditsOf(redis, client);
const auditOnce = () => runAudit({ maxWaitMs: 0 });

beforeEach(async () => {
  await awayFromMidnight();
  await redis.flushall();
  await emptyTables(client);
});

const today = (): number => Math.floor(Date.now() / dayMs);
const outboxOf = (tenant: string): string => outboxKey(partitionOf(tenant, 'u1', partitions));

/** Adds 24 answers of six learners to the outbox and counts them, as commits do. The learner u1 has four on skill s1. */
async function answer(tenant: string): Promise<void> {
  const now = Date.now();
  for (let i = 0; i < 24; i++) {
    const userId = `u${i % 6}`;
    const seq = 1 + Math.floor(i / 6);
    const times = { receivedAt: now, occurredAt: now, learnerSeq: seq, learnerVersion: seq };
    const answer = { tenant, userId, skillId: `s${i % 2}`, isCorrect: i % 3 > 0, eventId: `${i}` };
    const partition = partitionOf(tenant, userId, partitions);
    await redis.xadd(outboxKey(partition), '*', 'r', encoded(attemptRow(i, { ...answer, ...times })));
    await redis.incr(outboxRowCountKey(partition));
    await redis.hincrby(acceptedCountsKey(partition), acceptedField(tenant, today()), 1);
  }
}

async function drain(): Promise<void> {
  const drainBlock = createDrain({ outbox, warehouse, logger });
  const task = { partitions: indices(partitions), batch: null, save: async () => undefined };
  while ((await outbox.facts()).outboxLength > 0) await drainBlock(task);
}

const runSql = (query: string): Promise<unknown> =>
  client.command({ query, clickhouse_settings: { insert_deduplicate: 0, mutations_sync: '1' } });

/** Removes the oldest row of the learner u1 from the outbox. */
async function removeRow(tenant: string): Promise<string> {
  for (const [id, [, row = '']] of await redis.xrange(outboxOf(tenant), '-', '+')) {
    if (!row.startsWith(`${tenant}\tu1\t`)) continue;
    await redis.xdel(outboxOf(tenant), id);
    return row;
  }
  throw new Error(`the outbox has no row of ${tenant}`);
}

test('An audit names each kind of damage in ClickHouse by tenant, and no other tenant', async () => {
  const own = (tenant: string) => `tenant = '${tenant}' AND user_id = 'u1'`;
  const firstRow = (tenant: string) => `FROM attempts WHERE ${own(tenant)} ORDER BY learner_seq LIMIT 1`;
  const damages: Record<string, { sql: (tenant: string) => string; found: readonly string[] }> = {
    'row-deleted': {
      sql: (tenant) => `DELETE FROM attempts WHERE ${own(tenant)} AND learner_seq = 2`,
      found: [
        'missing attempts 4 3',
        'rollup learner_skill_daily.answers 23 24',
        'rollup learner_skill_daily.attempts 23 24',
        'rollup learner_skill_daily.correct 15 16',
        'rollup learner_skill_total.answers 23 24',
        'rollup learner_skill_total.attempts 23 24',
        'rollup learner_skill_total.correct 15 16',
        'rollup skill_daily.answers 23 24',
        'rollup skill_daily.attempts 23 24',
        'rollup skill_daily.correct 15 16',
      ],
    },
    'row-twice': {
      sql: (tenant) => `INSERT INTO attempts SELECT * ${firstRow(tenant)}`,
      found: ['doubled_id attempts 0 1', 'surplus attempts 4 5'],
    },
    'number-twice': {
      sql: (tenant) =>
        `INSERT INTO attempts SELECT * REPLACE (outbox_ms - 60000 AS outbox_ms) ${firstRow(tenant)}`,
      found: ['doubled_number attempts 0 1', 'surplus attempts 4 5'],
    },
    'day-deleted': {
      sql: (tenant) => `DELETE FROM learner_sums WHERE ${own(tenant)} AND kind = 'day' AND skill_id = 's1'`,
      found: [
        'rollup learner_skill_daily.answers 24 20',
        'rollup learner_skill_daily.attempts 24 20',
        'rollup learner_skill_daily.correct 16 12',
      ],
    },
    'total-deleted': {
      sql: (tenant) => `DELETE FROM learner_sums WHERE ${own(tenant)} AND kind = 'total'`,
      found: [
        'rollup learner_skill_total.answers 24 20',
        'rollup learner_skill_total.attempts 24 20',
        'rollup learner_skill_total.correct 16 12',
      ],
    },
    'rollup-twice': {
      sql: (tenant) =>
        `INSERT INTO daily_skill SELECT * FROM daily_skill WHERE tenant = '${tenant}' AND skill_id = 's1'`,
      found: [
        'rollup skill_daily.answers 24 36',
        'rollup skill_daily.attempts 24 36',
        'rollup skill_daily.correct 16 24',
      ],
    },
  };
  for (const tenant of ['sound', ...Object.keys(damages)]) await answer(tenant);
  assert.deepEqual((await auditOnce()).mismatches, [], 'all answers are in the outbox');
  await drain();
  assert.deepEqual((await auditOnce()).mismatches, []);
  for (const [tenant, { sql }] of Object.entries(damages)) await runSql(sql(tenant));
  const { mismatches, notCompared } = await auditOnce();
  const expected = Object.entries(damages).flatMap(([tenant, { found }]) =>
    found.map((name) => `${tenant} ${name}`),
  );
  assert.deepEqual([namesOf(mismatches), notCompared], [expected.sort(), []]);
});

test('An audit reports rows that vanished from the outbox or the dead letters as missing', async () => {
  for (const tenant of ['entry-deleted', 'parked', 'parked-deleted']) await answer(tenant);
  const park = async (tenant: string): Promise<string> => {
    const parked = parkedKey(outboxOf(tenant));
    await redis.xadd(parked, '*', 'id', '5-0', 'reason', 'refused', 'r', await removeRow(tenant));
    return parked;
  };
  await removeRow('entry-deleted');
  await park('parked');
  const parked = await park('parked-deleted');
  const lost = ['entry-deleted missing attempts 4 3'];
  assert.deepEqual(namesOf((await auditOnce()).mismatches), lost, 'before the drain');
  await drain();
  const { mismatches, totals } = await auditOnce();
  assert.deepEqual([namesOf(mismatches), totals.parked], [lost, 2]);
  await redis.del(parked);
  const withParked = [...lost, 'parked-deleted missing attempts 8 7'];
  assert.deepEqual(namesOf((await auditOnce()).mismatches), withParked);
});

test('An audit does not compare sums that a repair of pending rows may change', async () => {
  for (const tenant of ['idle', 'busy']) await answer(tenant);
  await drain();
  await answer('busy');
  await runSql(`DELETE FROM daily_skill WHERE skill_id = 's1'`);
  const { mismatches, notCompared } = await auditOnce();
  const expected = ['answers 24 12', 'attempts 24 12', 'correct 16 8'].map(
    (sum) => `idle rollup skill_daily.${sum}`,
  );
  assert.deepEqual(namesOf(mismatches), expected);
  assert.equal(notCompared.length, 1);
  assert.match(notCompared[0] ?? '', /^3 daily sums of rollups: rows of these sums are in the outbox/);
});

test('An audit waits for a pending erasure and reports one that makes no progress as not compared', async () => {
  await answer('erased');
  await drain();
  const partition = partitionOf('erased', 'u1', partitions);
  const correction = (await redis.xadd(outboxOf('erased'), '*', 'c', '{"v":0}')) as string;
  await runSql(`DELETE FROM attempts WHERE tenant = 'erased' AND user_id = 'u1'`);
  const unfinished = await auditOnce();
  assert.deepEqual(unfinished.mismatches, []);
  const reason = `accepted and stored answers of partition ${partition}: an erasure or a retraction is in progress`;
  assert.ok(unfinished.notCompared.includes(reason), unfinished.notCompared.join());
  let looks = 0;
  let isDone = false;
  const onStep = (): void => {
    looks += 1;
  };
  const waiting = runAudit({ onStep }).finally(() => {
    isDone = true;
  });
  // More than the three looks that confirm a difference.
  await waitFor('looks', () => looks > 4 || isDone);
  await redis.hincrby(removedCountsKey(partition), acceptedField('erased', today()), 4);
  await runSql(`DELETE FROM learner_sums WHERE tenant = 'erased' AND user_id = 'u1'`);
  await redis.xdel(outboxOf('erased'), correction);
  const { mismatches, totals } = await waiting;
  assert.ok(namesOf(mismatches).every((name) => name.includes('rollup skill_daily')));
  assert.deepEqual([totals.accepted, totals.removed, totals.stored], [24, 4, 20]);
});

test('A recorded audit prunes counts of days before the retained ones once they agree', async () => {
  const [first, middle, last] = [today() - 60, today() - 50, today() - 40];
  const rows = [first, middle, last].map((day, i) =>
    attemptRow(i, { receivedAt: day * dayMs, occurredAt: day * dayMs, learnerVersion: 1 }),
  );
  await warehouse.insert([encodedRows(rows)], 'old');
  const fieldOf = (day: number) => acceptedField('default', day);
  const count = (day: number, answers: number) => redis.hset(acceptedCountsKey(0), fieldOf(day), answers);
  await Promise.all([count(first, 1), count(middle, 2), count(last, 1)]);
  // The rows count as drained, because this outbox was used after them.
  await redis.xdel(outboxKey(0), (await redis.xadd(outboxKey(0), '*', 'r', '')) as string);
  const ports = { store: createAuditStore(redis, partitions), warehouse: createAuditWarehouse(client, null) };
  const { signal } = new AbortController();
  const options = { days: null, signal, pauseMs: 20, maxWaitMs: 0 };
  const record = () => auditAndRecord({ ...ports, logger }, options);
  assert.deepEqual(namesOf((await record()).mismatches), ['default missing attempts 2 1']);
  const kept = Object.keys(await redis.hgetall(acceptedCountsKey(0)));
  assert.deepEqual(new Set(kept), new Set([':pruned', fieldOf(middle), fieldOf(last)]));
  assert.deepEqual((await loadLastAudit(redis))?.mismatches, { missing: 1 });
  await count(middle, 1);
  assert.deepEqual((await record()).mismatches, []);
  assert.deepEqual(await redis.hgetall(acceptedCountsKey(0)), { ':pruned': `${today() - 36}` });
  const { mismatches, totals } = await runAudit({ days: 100 });
  assert.deepEqual([mismatches, totals.stored, totals.raw], [[], 0, 3]);
});

test('An audit ignores stored answers that no version counted, but finds their duplicates', async () => {
  const now = Date.now();
  const rows = indices(50).map((n) => attemptRow(n, { receivedAt: now, occurredAt: now, learnerVersion: 0 }));
  await warehouse.insert([encodedRows(rows)], 'uncounted');
  const { mismatches, totals } = await auditOnce();
  assert.deepEqual([namesOf(mismatches), totals.raw], [[], 50]);
  await warehouse.insert([encodedRows(rows.slice(0, 2))], 'uncounted again');
  assert.deepEqual(namesOf((await auditOnce()).mismatches), ['default doubled_id attempts 0 2']);
});
