/** 64 clients on one learner and skill, over two API services: nothing lost, nothing twice, the chain unbroken. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { callerOf } from '../support/http/http.js';
import { clickhouseOf, startSecondApi, startService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after });
const second = await startSecondApi({ after }, service);
const clickhouse = clickhouseOf({ after }, service);
const callers = [service, second].map((at) => callerOf(at, at.key));

const clients = 64;
const postsEach = 25;

interface Row {
  learner_seq: number;
  event_id: string;
  mastery_before: number;
  mastery_after: number;
}

const rowsOf = (client: ClickHouseClient, userId: string): Promise<Row[]> =>
  selectRows<Row>(
    client,
    `SELECT toUInt32(learner_seq) AS learner_seq, event_id, mastery_before, mastery_after
      FROM attempts WHERE user_id = '${userId}' ORDER BY attempts.learner_seq`,
  );

async function rollupsOf(
  client: ClickHouseClient,
  skillId: string,
): Promise<{ learner: number; skill: number }> {
  const [row] = await selectRows<{ learner: number; skill: number }>(
    client,
    `SELECT toUInt32((SELECT sum(attempts) FROM learner_skill_daily WHERE skill_id = '${skillId}')) AS learner,
      toUInt32((SELECT sum(attempts) FROM skill_daily WHERE skill_id = '${skillId}')) AS skill`,
  );
  if (!row) throw new Error('no rollups');
  return row;
}

interface Told {
  readonly replayed: boolean;
  readonly eventId: string | null;
  readonly data: { mastery_before: number; mastery_after: number; total_attempts: number };
}

/** Posts until it is told 200: a 503 or 409 is safe to repeat with the same event. */
async function post(client: number, n: number, userId: string): Promise<Told> {
  // A third goes without id; of the rest, pairs of clients at different services share theirs.
  const eventId = n % 3 === 0 ? null : `${Math.floor(client / 2)}-${n}`;
  const body = { user_id: userId, skill_id: userId, is_correct: n % 2 === 0, event_id: eventId };
  const caller = callers[client % callers.length] as (typeof callers)[number];
  for (let tries = 0; tries < 20; tries++) {
    const { status, headers, json } = await caller.track(body);
    if (status === 200) return { replayed: 'idempotent-replayed' in headers, eventId, data: json.data };
    assert.ok(eventId !== null && (status === 503 || status === 409), `${status} ${JSON.stringify(json)}`);
  }
  throw new Error('refused 20 times');
}

test('64 clients on one learner and skill', async () => {
  const userId = 'busy';
  const told = (
    await Promise.all(
      Array.from({ length: clients }, async (_, client) => {
        const answers: Told[] = [];
        for (let n = 0; n < postsEach; n++) answers.push(await post(client, n, userId));
        return answers;
      }),
    )
  ).flat();
  const withoutId = told.filter(({ eventId }) => eventId === null).length;
  const ids = new Set(told.flatMap(({ eventId }) => eventId ?? []));
  const counted = withoutId + ids.size;
  assert.equal(told.length, clients * postsEach);
  assert.equal(told.filter(({ replayed }) => !replayed).length, counted, 'answers told as fresh');

  const { json } = await (callers[0] as (typeof callers)[number]).get(`/api/v1/mastery/${userId}`);
  assert.equal(json.data.skills[0].total_attempts, counted, 'attempts in Redis');
  const numbers = told.filter(({ replayed }) => !replayed).map(({ data }) => data.total_attempts);
  assert.equal(new Set(numbers).size, counted, 'every attempt has its own number');

  await waitFor('rows in ClickHouse', async () => (await rowsOf(clickhouse, userId)).length >= counted);
  const rows = await rowsOf(clickhouse, userId);
  assert.equal(rows.length, counted);
  const round4 = (value: number): number => Math.round(value * 1e4) / 1e4;
  rows.forEach((row, i) => {
    assert.equal(row.learner_seq, i + 1);
    if (i > 0) assert.equal(row.mastery_before, rows[i - 1]?.mastery_after, `chain at ${i}`);
  });
  for (const { data } of told) {
    const row = rows[data.total_attempts - 1];
    assert.equal(round4(row?.mastery_before ?? 0), data.mastery_before);
    assert.equal(round4(row?.mastery_after ?? 0), data.mastery_after);
  }
  assert.deepEqual(new Set(rows.flatMap(({ event_id }) => event_id || [])), ids);
  await waitFor('rollups', async () => {
    const { learner, skill } = await rollupsOf(clickhouse, userId);
    return Math.min(learner, skill) >= counted;
  });
  assert.deepEqual(await rollupsOf(clickhouse, userId), { learner: counted, skill: counted });
});

test('batches and single answers of one learner at once keep one chain', async () => {
  const userId = 'mixed';
  const batch = Array.from({ length: 40 }, () => ({ user_id: userId, skill_id: userId, is_correct: true }));
  const accepted = await Promise.all(
    Array.from({ length: 16 }, async (_, i) => {
      const caller = callers[i % callers.length] as (typeof callers)[number];
      const headers = { 'Idempotency-Key': `batch-${i >> 1}` };
      const { status, json } =
        i % 4 < 2 ? await caller.trackAll(batch, headers) : await caller.track(batch[0], headers);
      assert.equal(status, 200, JSON.stringify(json));
      return i % 2 === 0 ? (json.data.accepted ?? 1) : 0;
    }),
  );
  const counted = accepted.reduce((sum: number, n: number) => sum + n, 0);
  await waitFor('rows in ClickHouse', async () => (await rowsOf(clickhouse, userId)).length >= counted);
  const rows = await rowsOf(clickhouse, userId);
  assert.equal(rows.length, counted);
  rows.forEach((row, i) => {
    if (i > 0) assert.equal(row.mastery_before, rows[i - 1]?.mastery_after);
  });
});
