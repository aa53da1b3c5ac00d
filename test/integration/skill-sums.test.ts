/**
 * Sums of a history in which half of the answers have several skills. An independent count in TypeScript is compared with
 * the views by skill, which count an answer under each of its skills, and with totals over skills, which count it once.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Redis } from 'ioredis';
import type { AttemptRow, SkillFigures } from '../../src/contracts/answers/attempt-row.js';
import { dayMs } from '../../src/domain/base/common.js';
import { groupBy, indices } from '../../src/lists.js';
import { applyRetention, planRetention } from '../../src/services/retention/apply-retention.js';
import { acceptedCountsKey, acceptedField, partitionOf } from '../../src/store/redis/keys.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { createAttemptWarehouse } from '../../src/warehouse/ingest/attempt-warehouse.js';
import { createCorrectionWarehouse } from '../../src/warehouse/maintenance/correction-warehouse.js';
import { createLearnerList } from '../../src/warehouse/reads/learner-list.js';
import { createRebuildSource } from '../../src/warehouse/reads/rebuild-source.js';
import { createTenantRead } from '../../src/warehouse/reads/tenant-read.js';
import {
  arrivedIn,
  daysSinceThen,
  oldAnswers,
  partitions,
  partsOf,
  startOf,
  store,
} from '../support/builders/old-answers.js';
import { auditsOf, namesOf } from '../support/commands/audits.js';
import { emptyTables, fileDatabase, filledTables } from '../support/inspect/warehouse.js';
import { assertNear } from '../support/near.js';
import { startTestRedis } from '../support/servers/embedded.js';
import { redisOf } from '../support/servers/service.js';

const { client, clickhouseUrl } = await fileDatabase({ after });
const redis = (await redisOf({ after }, await startTestRedis({ after }))) as Redis;
const parts = partsOf(client, redis);
const warehouse = createAttemptWarehouse(client);
const read = createTenantRead(client, (_, run) => run());
let rows = oldAnswers([1, 2, 3]);
const erasedUser = rows[0]?.event.userId ?? '';
const retractedUser = rows.findLast(({ event }) => event.tenant === 'default')?.event.userId ?? '';

before(async () => {
  await emptyTables(client);
  await store(client, rows);
  for (const { event } of rows) {
    const { tenant, userId, receivedAt } = event;
    const field = acceptedField(tenant, Math.floor(receivedAt / dayMs));
    await redis.hincrby(acceptedCountsKey(partitionOf(tenant, userId, partitions)), field, 1);
  }
});

const sumNames = [
  ...['attempts', 'correct', 'timed_seconds', 'predicted_correct', 'mastery_gain'],
  ...['answers', 'answers_correct', 'answers_seconds', 'answers_predicted'],
] as const;
type Sums = Record<(typeof sumNames)[number], number>;

/** One answer under its skill number `i`. */
function sumsOf({ event, figures, conditions }: AttemptRow, i: number): Sums {
  const { masteryBefore, masteryAfter } = figures.skills[i] as SkillFigures;
  const first = i === 0 ? 1 : 0;
  const [correct, seconds] = [event.isCorrect ? 1 : 0, event.timeSpentSeconds ?? 0];
  return {
    ...{ attempts: 1, correct, timed_seconds: seconds, predicted_correct: conditions.pCorrect },
    mastery_gain: masteryAfter - masteryBefore,
    ...{ answers: first, answers_correct: first * correct, answers_seconds: first * seconds },
    answers_predicted: first * conditions.pCorrect,
  };
}

/** Sums by a key of row and skill. */
function countIn(of: (row: AttemptRow, skillId: string) => string): Map<string, Sums> {
  const found = new Map<string, Sums>();
  for (const row of rows)
    for (const [i, skillId] of row.event.skillIds.entries()) {
      const own = sumsOf(row, i);
      const key = of(row, skillId);
      const sum = found.get(key);
      found.set(key, sum ? (addSums(sum, own) as Sums) : own);
    }
  return found;
}

const addSums = (a: Sums, b: Sums): object =>
  Object.fromEntries(sumNames.map((name) => [name, a[name] + b[name]]));

const dayOf = ({ event }: AttemptRow): string => new Date(event.occurredAt).toISOString().slice(0, 10);
const views: Readonly<Record<string, readonly [keys: string, of: Parameters<typeof countIn>[0]]>> = {
  skill_daily: ['tenant, skill_id, day', (row, skill) => [row.event.tenant, skill, dayOf(row)].join()],
  learner_skill_daily: [
    'tenant, user_id, skill_id, day',
    (row, skill) => [row.event.tenant, row.event.userId, skill, dayOf(row)].join(),
  ],
  learner_skill_total: [
    'tenant, user_id, skill_id',
    (row, skill) => [row.event.tenant, row.event.userId, skill].join(),
  ],
};

async function assertSums(when: string): Promise<void> {
  for (const [view, [keys, of]] of Object.entries(views)) {
    const expected = countIn(of);
    const key = `arrayStringConcat([${keys.split(', ').map((name) => `toString(${name})`)}], ',')`;
    const columns = sumNames.map((name) => `toFloat64(${name}) AS ${name}`);
    const found = await selectRows<Sums & { key: string }>(
      client,
      `SELECT ${key} AS key, ${columns.join(', ')} FROM ${view} ORDER BY key`,
    );
    assert.deepEqual(
      found.map((one) => one.key),
      [...expected.keys()].sort(),
      `${view} ${when}`,
    );
    for (const one of found)
      for (const name of sumNames)
        assertNear(one[name], expected.get(one.key)?.[name] ?? Number.NaN, 1e-4 * (1 + Math.abs(one[name])));
  }
  await assertTotals(when);
  const { mismatches, notCompared } = await auditsOf(redis, client)({ days: daysSinceThen() });
  assert.deepEqual([namesOf(mismatches), notCompared], [[], []], when);
}

/** Totals over skills, from all places that return them. */
async function assertTotals(when: string): Promise<void> {
  for (const [tenant, own] of groupBy(rows, ({ event }) => event.tenant)) {
    const correct = own.filter(({ event }) => event.isCorrect).length;
    for (const view of Object.keys(views)) {
      const query = `SELECT toFloat64(sum(answers)) AS n, toFloat64(sum(answers_correct)) AS correct FROM ${view}
        WHERE tenant = {tenant:String}`;
      assert.deepEqual(
        await selectRows(client, query, { params: { tenant } }),
        [{ n: own.length, correct }],
        when,
      );
    }
    const listed = await createLearnerList(read)(tenant, '', '', 100);
    for (const learner of listed) {
      const answers = own.filter(({ event }) => event.userId === learner.user_id);
      const right = answers.filter(({ event }) => event.isCorrect).length;
      assert.deepEqual([learner.total_attempts, learner.correct_attempts], [answers.length, right], when);
    }
    for await (const page of createRebuildSource(client, clickhouseUrl, 100).readAnsweredSkills(tenant))
      assert.deepEqual(
        page.map(({ skillId }) => skillId),
        [...new Set(own.flatMap(({ event }) => event.skillIds))].sort(),
        when,
      );
  }
}

/** In all partitions. */
const everything = indices(partitions).map((partition) => ({ partition, from: '0-0', to: '99-0', rows: 0 }));

test('Views count an answer under each of its skills, and totals over skills count it once', async () => {
  assert.ok(rows.some(({ event }) => event.skillIds.length === 3));
  await assertSums('after the insert');
});

test('repairRollups restores sums by skill and totals over skills', async () => {
  for (const table of filledTables.filter((one) => one !== 'attempts'))
    await client.command({ query: `TRUNCATE TABLE ${table}` });
  assert.deepEqual(await warehouse.repairRollups(everything), ['learner_sums', 'daily_skill']);
  await assertSums('after a repair');
});

test('Retention preserves sums by skill and totals over skills, also in a later repair', async () => {
  await applyRetention(parts, await planRetention(parts, 202602));
  await assertSums('after retention');
  // A repair covers the days and learners of the rows in its ranges, with their archived answers.
  const stored = 'SELECT tenant, skill_id, toDate(occurred_at), partition_id FROM skill_answers';
  await client.command({
    query: `DELETE FROM daily_skill WHERE (tenant, skill_id, day, partition_id) IN (${stored})`,
  });
  await client.command({ query: "DELETE FROM learner_sums WHERE tenant = 'default'" });
  await warehouse.repairRollups(everything);
  await assertSums('after retention and a repair');
});

const corrections = createCorrectionWarehouse(client);

async function correct(userId: string, tenant: string, fromSeq: number, until: number): Promise<void> {
  const below = { ms: fromSeq === 0 ? until : 1e6, seq: 0 };
  const partition = partitionOf(tenant, userId, partitions);
  const removed = [{ tenant, userId, partition, below, fromSeq, goalAt: until }];
  const [counts] = await corrections.countRemovals(removed);
  for (const [day, n] of Object.entries(counts?.answers ?? {}))
    await redis.hincrby(acceptedCountsKey(partition), acceptedField(tenant, Number(day)), -n);
  await corrections.remove(removed);
  const [remaining] = await corrections.countRemaining(removed);
  if (fromSeq === 0) assert.ok(Object.values(remaining ?? {}).every((n) => n === 0));
}

test('A retraction and an erasure remove an answer from the sums of all its skills', async () => {
  const own = rows.filter(({ event }) => event.userId === retractedUser);
  const fromSeq = own.length - 5;
  assert.ok(arrivedIn(own, 3, 3).length > 6);
  await correct(retractedUser, 'default', fromSeq, startOf(5));
  rows = rows.filter(({ event, figures }) => event.userId !== retractedUser || figures.learnerSeq < fromSeq);
  await assertSums('after a retraction');
  await correct(erasedUser, rows[0]?.event.tenant ?? '', 0, startOf(5));
  rows = rows.filter(({ event }) => event.userId !== erasedUser);
  await assertSums('after an erasure');
});
