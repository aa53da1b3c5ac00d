/** Compares Redis and ClickHouse with a ledger. */
import type { ClickHouseClient } from '@clickhouse/client';
import { Redis } from 'ioredis';
import { groupBy, splitIntoParts } from '../../../src/lists.js';
import { decodeLearner, learnerField } from '../../../src/store/learners/learner-codec.js';
import { learnerKey, partitionOf } from '../../../src/store/redis/keys.js';
import { defaultPartitions } from '../../../src/store/redis/server/deployment.js';
import { selectRows } from '../../../src/warehouse/clickhouse/client.js';
import { callerOf } from '../http/http.js';
import { askUntil } from '../wait.js';
import type { Deployment } from './deployment.js';
import { type AnswerEvent, confirm, type Entry, skillsOf } from './ledger.js';

export interface Findings {
  /** Confirmed answers that a store does not have. */
  lost: number;
  /** Answers that were counted more than once. */
  doubled: number;
  readonly differences: string[];
}

type Target = Pick<Deployment, 'port' | 'tenants' | 'redisUrl'>;
/** `answers/correct answers` by tenant, learner and skill, or by tenant and learner. */
type Counts = ReadonlyMap<string, string>;

/** @param learners all learners of the entries. The outbox must be empty, and no other client may write. */
export async function compareStores(
  target: Target,
  clickhouse: ClickHouseClient,
  entries: readonly Entry[],
  learners: readonly string[],
): Promise<Findings> {
  const found: Findings = { lost: 0, doubled: 0, differences: [] };
  const bySkill = countEntries(entries, skillsOf);
  const totals = countEntries(entries, () => [null]);
  compareCounts('Redis', bySkill, await readRedis(target, learners), found);
  compareCounts('Redis, over skills', totals, await readRedisTotals(target, learners), found);
  const where = `user_id IN (${learners.map((id) => `'${id}'`).join()})`;
  for (const [name, [source, answers, correct]] of Object.entries(storedCounts)) {
    const isTotal = name.endsWith('over skills');
    const rows = await selectRows<{ key: string; count: string }>(
      clickhouse,
      `SELECT concat(tenant, ' ', user_id${isTotal ? '' : ", ' ', skill"}) AS key,
        concat(toString(${answers}), '/', toString(${correct})) AS count
       FROM ${source} WHERE ${where} GROUP BY key`,
    );
    const counts = new Map(rows.map(({ key, count }) => [key, count]));
    compareCounts(name, isTotal ? totals : bySkill, counts, found);
  }
  await checkRows(clickhouse, where, found);
  const retracted = entries.filter((entry) => entry.retracted).map(({ event }) => event.event_id);
  await checkRetractions(clickhouse, where, retracted.sort().join(), found);
  for (const { first, counted, changed, event } of entries) {
    if (first === null) found.differences.push(`${event.event_id} was never confirmed`);
    if (counted > 1) found.doubled += counted - 1;
    if (changed !== null) found.differences.push(`${event.event_id}: first ${first}, then ${changed}`);
  }
  return found;
}

/** Sends all entries again. @returns how many the service counted now, because it had lost them */
export async function resendAll(target: Target, entries: readonly Entry[]): Promise<number> {
  let lost = 0;
  for (const tenant of target.tenants) {
    const own = entries.filter((entry) => entry.tenant === tenant);
    const caller = callerOf(target, tenant);
    for (const batch of splitIntoParts(own, 500)) {
      const { json } = await askUntil(
        'all answers to be replayed',
        () => caller.trackAll(batch.map(({ event }) => event)),
        ({ status }) => status === 200,
      );
      for (const [i, entry] of batch.entries()) {
        const { data, replayed } = json.data.results[i];
        if (replayed === true) confirm(entry, data, true);
        else lost += 1;
      }
    }
  }
  return lost;
}

const keyOf = (tenant: string, userId: string, skillId: string | null): string =>
  `${tenant} ${userId}${skillId === null ? '' : ` ${skillId}`}`;

/** Counts an entry under each of its skills. */
function countEntries(
  entries: readonly Entry[],
  skillsOfEvent: (event: AnswerEvent) => readonly (string | null)[],
): Counts {
  const counted = entries
    .filter(({ retracted }) => !retracted)
    .flatMap(({ tenant, event }) =>
      skillsOfEvent(event).map((skillId) => ({ key: keyOf(tenant, event.user_id, skillId), event })),
    );
  const correct = (own: typeof counted): number => own.filter(({ event }) => event.is_correct).length;
  const groups = groupBy(counted, ({ key }) => key);
  return new Map([...groups].map(([key, own]) => [key, `${own.length}/${correct(own)}`]));
}

async function readRedis(target: Target, learners: readonly string[]): Promise<Counts> {
  const counts = new Map<string, string>();
  for (const tenant of target.tenants) {
    const caller = callerOf(target, tenant);
    for (const userId of learners) {
      const { status, json } = await caller.get(`/api/v1/mastery/${userId}`);
      for (const { skill_id, total_attempts, correct_attempts } of status === 200 ? json.data.skills : [])
        counts.set(keyOf(tenant, userId, skill_id), `${total_attempts}/${correct_attempts}`);
    }
  }
  return counts;
}

async function readRedisTotals({ redisUrl, tenants }: Target, learners: readonly string[]): Promise<Counts> {
  const redis = new Redis(redisUrl);
  const counts = new Map<string, string>();
  for (const tenant of tenants)
    for (const userId of learners) {
      const key = learnerKey(partitionOf(tenant, userId, defaultPartitions), tenant, userId);
      const record = await redis.hgetBuffer(key, learnerField);
      if (record === null) continue;
      const { attempts, trace } = decodeLearner(record);
      counts.set(keyOf(tenant, userId, null), `${attempts}/${trace.right}`);
    }
  redis.disconnect();
  return counts;
}

const rowsBySkill =
  '(SELECT tenant, user_id, event_id, is_correct, arrayJoin(skill_ids) AS skill FROM attempts)';
const sumsBySkill = (view: string): string => `(SELECT *, skill_id AS skill FROM ${view})`;
const eventIds = ['uniqExact(event_id)', 'uniqExactIf(event_id, is_correct = 1)'] as const;
const sums = ['sum(attempts)', 'sum(correct)'] as const;
const sumsOverSkills = ['sum(answers)', 'sum(answers_correct)'] as const;

/** Counts to compare: source, number of answers and number of correct answers. */
const storedCounts: Readonly<Record<string, readonly [source: string, answers: string, correct: string]>> = {
  attempts: [rowsBySkill, 'count()', 'sum(is_correct)'],
  'event ids': [rowsBySkill, ...eventIds],
  learner_skill_daily: [sumsBySkill('learner_skill_daily'), ...sums],
  learner_skill_total: [sumsBySkill('learner_skill_total'), ...sums],
  'attempts, over skills': ['attempts', 'count()', 'sum(is_correct)'],
  'event ids, over skills': ['attempts', ...eventIds],
  'learner_skill_daily, over skills': ['learner_skill_daily', ...sumsOverSkills],
  'learner_skill_total, over skills': ['learner_skill_total', ...sumsOverSkills],
};

function compareCounts(store: string, expected: Counts, actual: Counts, found: Findings): void {
  for (const key of new Set([...expected.keys(), ...actual.keys()])) {
    const [want, have] = [expected.get(key) ?? '0/0', actual.get(key) ?? '0/0'];
    if (want === have) continue;
    found.differences.push(`${key}: the ledger has ${want}, ${store} has ${have}`);
    const surplus = Number.parseInt(have, 10) - Number.parseInt(want, 10);
    if (surplus > 0) found.doubled += surplus;
    else found.lost -= surplus;
  }
}

/** The journal stores retractions after the rows. */
async function checkRetractions(client: ClickHouseClient, where: string, expected: string, found: Findings) {
  const query = `SELECT event_id AS id FROM taken_back FINAL WHERE ${where} ORDER BY id`;
  const read = async () => (await selectRows<{ id: string }>(client, query)).map(({ id }) => id).join();
  const stored = await askUntil('the retractions', read, ({ length }) => length >= expected.length);
  if (stored !== expected) found.differences.push(`retracted: ${expected}, stored: ${stored}`);
}

/**
 * Rollups of all learners, outbox ids, learner_seq without gaps, and each mastery_before equal to the previous
 * mastery_after, if the learner forgets nothing in between.
 */
async function checkRows(clickhouse: ClickHouseClient, where: string, found: Findings): Promise<void> {
  const [row = {}] = await selectRows<Record<string, number>>(
    clickhouse,
    `SELECT
      toUInt32((SELECT count() FROM attempts)) AS attempts,
      toUInt32((SELECT sum(length(skill_ids)) FROM attempts)) AS on_skills,
      ${['skill_daily', 'learner_skill_daily', 'learner_skill_total']
        .map(
          (view) => `toUInt32((SELECT sum(answers) FROM ${view})) AS in_${view},
      toUInt32((SELECT sum(attempts) FROM ${view})) AS on_skills_in_${view},`,
        )
        .join('\n      ')}
      toUInt32((SELECT uniqExact(partition_id, outbox_ms, outbox_seq) FROM attempts)) AS outbox_ids,
      toUInt32((SELECT countIf(n != last OR n != different) FROM (
        SELECT count() AS n, max(learner_seq) AS last, uniqExact(learner_seq) AS different
        FROM attempts WHERE ${where} GROUP BY tenant, user_id))) AS gaps,
      toUInt32((SELECT countIf(before != after AND at < latest + INTERVAL 1 DAY AND place > 1) FROM (
        SELECT traced.2 AS before, row_number() OVER w AS place, lagInFrame(traced.3) OVER w AS after, at,
          max(at) OVER (PARTITION BY tenant, user_id, traced.1 ORDER BY learner_seq
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
        FROM (SELECT tenant, user_id, learner_seq, occurred_at AS at,
            arrayJoin(arrayZip(skill_ids, masteries_before, masteries_after)) AS traced
          FROM attempts WHERE ${where})
        WINDOW w AS (PARTITION BY tenant, user_id, traced.1 ORDER BY learner_seq
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)))) AS breaks`,
  );
  const { attempts, on_skills, gaps, breaks, ...sums } = row;
  for (const [name, sum] of Object.entries(sums)) {
    const expected = name.startsWith('on_skills') ? on_skills : attempts;
    if (sum !== expected) found.differences.push(`${expected} attempts, but ${sum} ${name}`);
  }
  if (gaps !== 0) found.differences.push(`${gaps} learners have gaps in learner_seq`);
  if (breaks !== 0) found.differences.push(`${breaks} masteries do not follow the previous ones`);
}
