/** Whether Redis and ClickHouse hold what the ledger says, no more and no less. */
import type { ClickHouseClient } from '@clickhouse/client';
import { selectRows } from '../../../src/warehouse/clickhouse/client.js';
import { callerOf } from '../http/http.js';
import { askUntil, waitFor } from '../wait.js';
import { confirm, type Entry } from './ledger.js';
import type { Stand } from './stand.js';

/** What was found wrong; all is well where nothing is lost, nothing doubled and there are no differences. */
export interface Findings {
  /** Confirmed answers that Redis had forgotten. */
  lost: number;
  /** Answers that were counted again. */
  doubled: number;
  readonly differences: string[];
}

const resendTogether = 500;

/** @param learners ids of all learners of the entries. The outbox must be empty, and nobody else may write. */
export async function compare(
  stand: Stand,
  clickhouse: ClickHouseClient,
  entries: readonly Entry[],
  learners: readonly string[],
): Promise<Findings> {
  const found: Findings = { lost: 0, doubled: 0, differences: [] };
  const expected = countsOf(entries);
  await inRedis(stand, expected, learners, found);
  const where = `user_id IN (${learners.map((id) => `'${id}'`).join()})`;
  for (const [name, query] of Object.entries(countQueries(where))) {
    differ(name, expected, await countsIn(clickhouse, query), found);
  }
  await inOrder(clickhouse, where, found);
  await areNoted(clickhouse, where, entries, found);
  for (const { first, fresh, otherwise, event } of entries) {
    if (first === null) found.differences.push(`${event.event_id} was never confirmed`);
    if (fresh > 1) found.doubled += fresh - 1;
    if (otherwise !== null) found.differences.push(`${event.event_id}: first ${first}, then ${otherwise}`);
  }
  return found;
}

/**
 * Sends every answer of the ledger once more. What is told as counted just now was lost, and is there again.
 * @returns how many those were
 */
export async function resendAll(stand: Stand, entries: readonly Entry[]): Promise<number> {
  let lost = 0;
  for (const tenant of stand.tenants) {
    const own = entries.filter((entry) => entry.tenant === tenant);
    for (let at = 0; at < own.length; at += resendTogether) {
      lost += await resend(stand, tenant, own.slice(at, at + resendTogether));
    }
  }
  return lost;
}

async function resend(stand: Stand, tenant: string, entries: readonly Entry[]): Promise<number> {
  const caller = callerOf(stand, tenant);
  const { json } = await askUntil(
    'all answers to be told again',
    () => caller.trackAll(entries.map(({ event }) => event)),
    ({ status }) => status === 200,
  );
  let lost = 0;
  entries.forEach((entry, i) => {
    const { data, replayed } = json.data.results[i];
    if (replayed === true) confirm(entry, data, true);
    else lost += 1;
  });
  return lost;
}

/** Answers and correct ones by tenant, learner and skill; or by tenant and skill. */
type Counts = Map<string, string>;

function countsOf(entries: readonly Entry[]): Counts {
  const sums = new Map<string, [number, number]>();
  for (const { tenant, event } of entries.filter(({ takenBack }) => !takenBack)) {
    const key = `${tenant} ${event.user_id} ${event.skill_id}`;
    const [attempts, correct] = sums.get(key) ?? [0, 0];
    sums.set(key, [attempts + 1, correct + (event.is_correct ? 1 : 0)]);
  }
  return new Map([...sums].map(([key, [attempts, correct]]) => [key, `${attempts}/${correct}`]));
}

async function inRedis(
  stand: Stand,
  expected: Counts,
  learners: readonly string[],
  found: Findings,
): Promise<void> {
  const counts: Counts = new Map();
  for (const tenant of stand.tenants) {
    const caller = callerOf(stand, tenant);
    for (const userId of learners) {
      const { status, json } = await caller.get(`/api/v1/mastery/${userId}`);
      for (const skill of status === 200 ? json.data.skills : []) {
        counts.set(
          `${tenant} ${userId} ${skill.skill_id}`,
          `${skill.total_attempts}/${skill.correct_attempts}`,
        );
      }
    }
  }
  differ('Redis', expected, counts, found);
}

const countQueries = (where: string): Record<string, string> => ({
  attempts: `SELECT tenant, user_id, skill_id, count() AS n, sum(is_correct) AS c FROM attempts WHERE ${where} GROUP BY ALL`,
  'events of attempts': `SELECT tenant, user_id, skill_id, uniqExact(event_id) AS n, uniqExactIf(event_id, is_correct = 1) AS c
    FROM attempts WHERE ${where} GROUP BY ALL`,
  learner_skill_daily: `SELECT tenant, user_id, skill_id, sum(attempts) AS n, sum(correct) AS c
    FROM learner_skill_daily WHERE ${where} GROUP BY ALL`,
  learner_skill_total: `SELECT tenant, user_id, skill_id, attempts AS n, correct AS c
    FROM learner_skill_total WHERE ${where}`,
});

async function countsIn(clickhouse: ClickHouseClient, query: string): Promise<Counts> {
  const wrapped = `SELECT tenant, user_id, skill_id, toUInt32(n) AS n, toUInt32(c) AS c FROM (${query})`;
  const rows = await selectRows<{ tenant: string; user_id: string; skill_id: string; n: number; c: number }>(
    clickhouse,
    wrapped,
  );
  return new Map(rows.map((row) => [`${row.tenant} ${row.user_id} ${row.skill_id}`, `${row.n}/${row.c}`]));
}

function differ(place: string, expected: Counts, counts: Counts, found: Findings): void {
  for (const key of new Set([...expected.keys(), ...counts.keys()])) {
    const [wanted, is] = [expected.get(key) ?? '0/0', counts.get(key) ?? '0/0'];
    if (wanted === is) continue;
    found.differences.push(`${key}: the ledger has ${wanted}, ${place} ${is}`);
    const excess = Number.parseInt(is, 10) - Number.parseInt(wanted, 10);
    if (excess > 0) found.doubled += excess;
    else found.lost -= excess;
  }
}

/** Each answer that was taken back once, and no other. They follow over the journal. */
async function areNoted(
  clickhouse: ClickHouseClient,
  where: string,
  entries: readonly Entry[],
  found: Findings,
): Promise<void> {
  const wanted = entries.flatMap(({ takenBack, event }) => (takenBack ? [event.event_id] : [])).sort();
  const ask = async (): Promise<string> => {
    const query = `SELECT event_id AS id FROM taken_back FINAL WHERE ${where} ORDER BY id`;
    return (await selectRows<{ id: string }>(clickhouse, query)).map(({ id }) => id).join();
  };
  let noted = '';
  const isThere = async (): Promise<boolean> => {
    noted = await ask();
    return noted.length >= wanted.join().length;
  };
  await waitFor('what was taken back to be noted', isThere);
  if (noted !== wanted.join()) found.differences.push(`taken back were ${wanted}, noted are ${noted}`);
}

/** Of all rollups together, and in the order in which answers were applied. */
async function inOrder(clickhouse: ClickHouseClient, where: string, found: Findings): Promise<void> {
  const [row] = await selectRows<Record<string, number>>(
    clickhouse,
    `SELECT
      toUInt32((SELECT count() FROM attempts)) AS attempts,
      toUInt32((SELECT sum(attempts) FROM skill_daily)) AS in_skill_daily,
      toUInt32((SELECT sum(attempts) FROM learner_skill_daily)) AS in_learner_skill_daily,
      toUInt32((SELECT sum(attempts) FROM learner_skill_total)) AS in_learner_skill_total,
      toUInt32((SELECT uniqExact(partition_id, outbox_ms, outbox_seq) FROM attempts)) AS outbox_ids,
      toUInt32((SELECT countIf(n != last OR n != different) FROM (
        SELECT count() AS n, max(learner_seq) AS last, uniqExact(learner_seq) AS different
        FROM attempts WHERE ${where} GROUP BY tenant, user_id))) AS gaps,
      toUInt32((SELECT countIf(before != after AND place > 1) FROM (
        SELECT mastery_before AS before, row_number() OVER w AS place,
          lagInFrame(mastery_after) OVER w AS after
        FROM attempts WHERE ${where}
        WINDOW w AS (PARTITION BY tenant, user_id, skill_id ORDER BY learner_seq
          ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)))) AS breaks`,
  );
  const { attempts, gaps, breaks, ...same } = row as Record<string, number>;
  for (const [name, n] of Object.entries(same)) {
    if (n !== attempts) found.differences.push(`${attempts} attempts, ${n} ${name}`);
  }
  if (gaps !== 0) found.differences.push(`${gaps} learners with gaps in learner_seq`);
  if (breaks !== 0) found.differences.push(`${breaks} breaks in the chains of mastery`);
}
