/** What the audit finds, what it holds for no mismatch, and what it cannot decide. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../src/logger.js';
import { auditAndRecord } from '../../src/services/audit/run-audit.js';
import { createAuditStore, loadLastAudit } from '../../src/store/audit/audit-store.js';
import {
  acceptedCountsKey,
  acceptedField,
  outboxKey,
  parkedKey,
  partitionOf,
  removedCountsKey,
} from '../../src/store/redis/keys.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { createAuditWarehouse } from '../../src/warehouse/maintenance/audit-warehouse.js';
import { learnerSums } from '../../src/warehouse/schema/rollups.js';
import { attemptRow, encodedRows } from '../support/builders/attempt-rows.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { stageOf } from '../support/commands/audit-stage.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { freshDatabase } from '../support/servers/embedded.js';

const long = { timeout: 600_000 };
const { clickhouseUrl } = await freshDatabase();

/** Where partition and outbox of the tenant's learner are. */
const outboxOf = (tenant: string): string => outboxKey(partitionOf(tenant, 'u1', 16));

/** A command of the test's own on the tables. */
type Damage = (tenant: string) => Promise<unknown>;

const attemptsOf = (tenant: string): string => `FROM attempts WHERE tenant = '${tenant}' AND user_id = 'u1'`;
const first = 'ORDER BY learner_seq LIMIT 1';
beforeEach(awayFromMidnight);

test('each kind of damage to what is stored is found and named, and nothing else', long, async (t) => {
  const { redis, clickhouse, answer, drain } = await stageOf(t, clickhouseUrl);
  const sql = (query: string): Promise<unknown> =>
    clickhouse.command({ query, clickhouse_settings: { insert_deduplicate: 0, mutations_sync: '1' } });
  const view = (tenant: string) => `tenant = '${tenant}'`;
  const damages: Record<string, { do: Damage; found: readonly string[] }> = {
    sound: { do: async () => undefined, found: [] },
    'row-deleted': {
      do: (tenant) =>
        sql(`DELETE FROM attempts WHERE ${view(tenant)} AND user_id = 'u1' AND learner_seq = 2`),
      found: [
        'missing attempts 4 3',
        'rollup learner_skill_daily.attempts 23 24',
        'rollup learner_skill_daily.correct 15 16',
        'rollup learner_skill_total.attempts 23 24',
        'rollup learner_skill_total.correct 15 16',
        'rollup skill_daily.attempts 23 24',
        'rollup skill_daily.correct 15 16',
      ],
    },
    'row-twice': {
      do: (tenant) => sql(`INSERT INTO attempts SELECT * ${attemptsOf(tenant)} ${first}`),
      found: ['doubled_id attempts 0 1', 'surplus attempts 4 5'],
    },
    'number-twice': {
      do: (tenant) =>
        sql(
          `INSERT INTO attempts SELECT * REPLACE (outbox_ms - 60000 AS outbox_ms) ${attemptsOf(tenant)} ${first}`,
        ),
      found: ['doubled_number attempts 0 1', 'surplus attempts 4 5'],
    },
    'rollup-deleted': {
      do: (tenant) =>
        sql(
          `DELETE FROM learner_sums WHERE ${view(tenant)} AND kind = 'day' AND user_id = 'u1' AND skill_id = 's1'`,
        ),
      found: ['rollup learner_skill_daily.attempts 24 20', 'rollup learner_skill_daily.correct 16 12'],
    },
    'total-deleted': {
      do: (tenant) =>
        sql(`DELETE FROM learner_sums WHERE ${view(tenant)} AND kind = 'total' AND user_id = 'u1'`),
      found: ['rollup learner_skill_total.attempts 24 20', 'rollup learner_skill_total.correct 16 12'],
    },
    'rollup-twice': {
      do: (tenant) =>
        sql(`INSERT INTO daily_skill SELECT * FROM daily_skill WHERE ${view(tenant)} AND skill_id = 's1'`),
      found: ['rollup skill_daily.attempts 24 36', 'rollup skill_daily.correct 16 24'],
    },
  };
  for (const tenant of Object.keys(damages)) await answer(tenant);
  const audit = auditsOf(redis, clickhouse);
  const still = { maxWaitMs: 0 };
  assert.deepEqual((await audit(still)).mismatches, [], 'all of it waits in the outbox');
  await drain();
  assert.deepEqual((await audit(still)).mismatches, []);
  for (const [tenant, damage] of Object.entries(damages)) {
    await damage.do(tenant);
    const { mismatches, notCompared } = await audit(still);
    const own = namesOf(mismatches.filter((mismatch) => mismatch.tenant === tenant));
    assert.deepEqual([own, notCompared], [damage.found.map((name) => `${tenant} ${name}`), []]);
  }
});

test(
  'rows that are gone from the outbox or from the parked ones are found; those that are there are no matter',
  long,
  async (t) => {
    const { redis, clickhouse, answer, drain } = await stageOf(t, clickhouseUrl);
    for (const tenant of ['entry-deleted', 'parked', 'parked-deleted']) await answer(tenant);
    const audit = auditsOf(redis, clickhouse);
    const still = { maxWaitMs: 0 };
    /** Takes one row of the learner u1 out of its entry. */
    const takeRow = async (tenant: string): Promise<string> => {
      const outbox = outboxOf(tenant);
      const isMeant = (row: string): boolean => row.startsWith(`${tenant}\tu1\t`);
      for (const [id, [, rows = '']] of await redis.xrange(outbox, '-', '+')) {
        const lines = rows.split('\n');
        const row = lines.find(isMeant);
        if (row === undefined) continue;
        await redis.xdel(outbox, id);
        const others = lines.toSpliced(lines.indexOf(row), 1);
        if (others.length > 0) await redis.xadd(outbox, '*', 'r', others.join('\n'));
        return row;
      }
      throw new Error(`no row of ${tenant} waits`);
    };
    const park = async (tenant: string): Promise<string> => {
      const parked = parkedKey(outboxOf(tenant));
      await redis.xadd(parked, '*', 'id', '5-0', 'reason', 'refused', 'r', await takeRow(tenant));
      return parked;
    };
    await takeRow('entry-deleted');
    await park('parked');
    const parked = await park('parked-deleted');
    const lost = ['entry-deleted missing attempts 4 3'];
    assert.deepEqual(namesOf((await audit(still)).mismatches), lost, 'while they wait');
    await drain();
    const { mismatches, totals } = await audit(still);
    assert.deepEqual([namesOf(mismatches), totals.parked], [lost, 2]);
    await redis.del(parked);
    assert.deepEqual(namesOf((await audit(still)).mismatches), [
      ...lost,
      'parked-deleted missing attempts 8 7',
    ]);
  },
);

test(
  'answers of versions that did not count them are no mismatch, and doubled ones are found all the same',
  long,
  async (t) => {
    const { redis, clickhouse } = await stageOf(t, clickhouseUrl);
    const { insert } = createAttemptWarehouse(clickhouse);
    const now = Date.now();
    const rows = Array.from({ length: 50 }, (_, i) =>
      attemptRow(i, { receivedAt: now, occurredAt: now, learnerVersion: 0 }),
    );
    await insert([encodedRows(rows)], 'first');
    const audit = auditsOf(redis, clickhouse);
    const clean = await audit();
    assert.deepEqual([clean.mismatches, clean.totals.raw], [[], 50]);
    await insert([encodedRows(rows.slice(0, 2))], 'again');
    assert.deepEqual(namesOf((await audit()).mismatches), ['default doubled_id attempts 0 2']);
  },
);

test(
  'with the pipeline stopped a sum that a repair may be mending is not decided, and others are',
  long,
  async (t) => {
    const { redis, clickhouse, answer, drain } = await stageOf(t, clickhouseUrl);
    for (const tenant of ['idle', 'busy']) await answer(tenant);
    await drain();
    await answer('busy');
    await clickhouse.command({ query: `DELETE FROM daily_skill WHERE skill_id = 's1'` });
    const { mismatches, notCompared } = await auditsOf(redis, clickhouse)({ maxWaitMs: 0 });
    assert.deepEqual(namesOf(mismatches), [
      'idle rollup skill_daily.attempts 24 12',
      'idle rollup skill_daily.correct 16 8',
    ]);
    assert.equal(notCompared.length, 1);
    assert.match(notCompared[0] ?? '', /^2 daily sums of rollups: rows of theirs wait/);
  },
);

test('an erasure on its way is waited for; one that does not move is told', long, async (t) => {
  const { redis, clickhouse, answer, drain } = await stageOf(t, clickhouseUrl);
  await answer('erased');
  await drain();
  const audit = auditsOf(redis, clickhouse);
  const key = outboxOf('erased');
  const order = (await redis.xadd(key, '*', 'c', '{"v":0}')) as string;
  await clickhouse.command({ query: `DELETE FROM attempts WHERE tenant = 'erased' AND user_id = 'u1'` });
  const told = await audit({ maxWaitMs: 0 });
  assert.deepEqual(told.mismatches, []);
  const partition = partitionOf('erased', 'u1', 16);
  assert.ok(
    told.notCompared.includes(
      `accepted and stored answers of partition ${partition}: an erasure or a taking back is under way`,
    ),
    told.notCompared.join(),
  );
  let done = false;
  const waiting = audit().finally(() => {
    done = true;
  });
  await sleep(1000);
  assert.equal(done, false, 'it waits');
  await redis.hincrby(
    removedCountsKey(partition),
    acceptedField('erased', Math.floor(Date.now() / 86_400_000)),
    4,
  );
  await clickhouse.command({
    query: `DELETE FROM ${learnerSums.table.name} WHERE tenant = 'erased' AND user_id = 'u1'`,
  });
  await redis.xdel(key, order);
  const { mismatches, totals } = await waiting;
  assert.deepEqual(
    namesOf(mismatches).filter((name) => !name.includes('rollup skill_daily')),
    [],
  );
  assert.deepEqual([totals.accepted, totals.removed, totals.stored], [24, 4, 20]);
});

test(
  'days beyond those that are kept are forgotten once they agree, and are no mismatch afterwards',
  long,
  async (t) => {
    const { redis, clickhouse } = await stageOf(t, clickhouseUrl);
    const day = Math.floor(Date.now() / 86_400_000);
    const old = [day - 60, day - 50, day - 40];
    const rows = old.map((one, i) =>
      attemptRow(i, { receivedAt: one * 86_400_000, occurredAt: one * 86_400_000, learnerVersion: 1 }),
    );
    await createAttemptWarehouse(clickhouse).insert([encodedRows(rows)], 'old');
    const counts = Object.fromEntries(old.map((one) => [acceptedField('default', one), 1]));
    await redis.hset(acceptedCountsKey(0), { ...counts, [acceptedField('default', day - 50)]: 2 });
    const { signal } = new AbortController();
    const parts = {
      store: createAuditStore(redis, 16),
      warehouse: createAuditWarehouse(clickhouse, null),
      logger: createLogger('silent', 'test'),
    };
    const keep = () => auditAndRecord(parts, { days: null, signal, pauseMs: 20, maxWaitMs: 0 });
    // Clocks of Redis and of these ids are far apart: an outbox that has been used knows where it ends.
    await redis.xdel(outboxKey(0), (await redis.xadd(outboxKey(0), '*', 'r', '')) as string);
    assert.deepEqual(namesOf((await keep()).mismatches), ['default missing attempts 2 1']);
    assert.deepEqual(Object.keys(await redis.hgetall(acceptedCountsKey(0))).sort(), [
      ':pruned',
      acceptedField('default', day - 50),
      acceptedField('default', day - 40),
    ]);
    assert.deepEqual((await loadLastAudit(redis))?.mismatches, { missing: 1 });
    await redis.hset(acceptedCountsKey(0), acceptedField('default', day - 50), 1);
    assert.deepEqual((await keep()).mismatches, []);
    assert.deepEqual(await redis.hgetall(acceptedCountsKey(0)), { ':pruned': `${day - 36}` });
    const { mismatches, totals } = await auditsOf(redis, clickhouse)({ days: 100 });
    assert.deepEqual([mismatches, totals.stored, totals.raw], [[], 0, 3]);
  },
);
