/** Concurrent answers of the same learners, over two API processes with several lanes. Also runs on a Redis Cluster. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { computeSum, indices } from '../../src/lists.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { type Caller, callerOf } from '../support/http/http.js';
import { clickhouseOf, redisOf, startSecondApi, startService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await startService({ after }, { lanes: 3 });
const second = await startSecondApi({ after }, service);
const clickhouse = clickhouseOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const callers = [service, second].map((at) => callerOf(at, at.key)) as [Caller, Caller];
const callerFor = (client: number): Caller => callers[client % 2] as Caller;

interface Row {
  learner_seq: number;
  event_id: string;
  mastery_before: number;
  mastery_after: number;
}

/** The learner's rows, after at least so many are stored. */
async function waitForRows(userId: string, count: number): Promise<Row[]> {
  const query = `SELECT toUInt32(learner_seq) AS learner_seq, event_id, mastery_before, mastery_after
    FROM attempts WHERE user_id = '${userId}' ORDER BY attempts.learner_seq`;
  return askUntil(
    'rows in ClickHouse',
    () => selectRows<Row>(clickhouse, query),
    ({ length }) => length >= count,
  );
}

/** Each answer continues with the mastery after the one before. */
function assertChain(rows: readonly Row[], count: number): void {
  assert.equal(rows.length, count);
  rows.forEach((row, i) => {
    assert.equal(row.learner_seq, i + 1);
    if (i > 0) assert.equal(row.mastery_before, rows[i - 1]?.mastery_after, `row ${i}`);
  });
}

const readRollups = (skillId: string): Promise<{ learner: number; skill: number }[]> =>
  selectRows(
    clickhouse,
    `SELECT toUInt32((SELECT sum(attempts) FROM learner_skill_daily WHERE skill_id = '${skillId}')) AS learner,
      toUInt32((SELECT sum(attempts) FROM skill_daily WHERE skill_id = '${skillId}')) AS skill`,
  );

interface Tracked {
  readonly isReplayed: boolean;
  readonly eventId: string | null;
  readonly data: { mastery_before: number; mastery_after: number; total_attempts: number };
}

/** Repeats the event after 503 and 409, as clients do. */
async function post(client: number, n: number, userId: string): Promise<Tracked> {
  // A third has no id; the others have the id of another client at the other process.
  const eventId = n % 3 === 0 ? null : `${Math.floor(client / 2)}-${n}`;
  const body = { user_id: userId, skill_id: userId, is_correct: n % 2 === 0, event_id: eventId };
  for (let tries = 0; tries < 20; tries++) {
    const { status, headers, json } = await callerFor(client).track(body);
    if (status === 200) return { isReplayed: 'idempotent-replayed' in headers, eventId, data: json.data };
    assert.ok(eventId !== null && (status === 503 || status === 409), `${status} ${JSON.stringify(json)}`);
  }
  throw new Error('rejected 20 times');
}

test('Two services count concurrent answers of one learner and skill once, in one chain', async () => {
  const userId = 'busy';
  const [clients, postsEach] = [32, 20];
  const track = async (client: number): Promise<Tracked[]> => {
    const results: Tracked[] = [];
    for (const n of indices(postsEach)) results.push(await post(client, n, userId));
    return results;
  };
  const tracked = (await Promise.all(indices(clients).map(track))).flat();
  const ids = new Set(tracked.flatMap(({ eventId }) => eventId ?? []));
  const counted = tracked.filter(({ eventId }) => eventId === null).length + ids.size;
  const fresh = tracked.filter(({ isReplayed }) => !isReplayed);
  assert.deepEqual([tracked.length, fresh.length], [clients * postsEach, counted]);
  assert.equal(new Set(fresh.map(({ data }) => data.total_attempts)).size, counted);
  const { json } = await callers[0].get(`/api/v1/mastery/${userId}`);
  assert.equal(json.data.skills[0].total_attempts, counted);

  const rows = await waitForRows(userId, counted);
  assertChain(rows, counted);
  const round4 = (value = 0): number => Math.round(value * 1e4) / 1e4;
  for (const { data } of tracked) {
    const row = rows[data.total_attempts - 1];
    const masteries = [round4(row?.mastery_before), round4(row?.mastery_after)];
    assert.deepEqual(masteries, [data.mastery_before, data.mastery_after]);
  }
  assert.deepEqual(new Set(rows.flatMap(({ event_id }) => event_id || [])), ids);
  const rollups = await askUntil(
    'rollups',
    () => readRollups(userId),
    ([row]) => Math.min(row?.learner ?? 0, row?.skill ?? 0) >= counted,
  );
  assert.deepEqual(rollups, [{ learner: counted, skill: counted }]);
});

test('Concurrent batches and single answers of one learner form one chain', async () => {
  const userId = 'mixed';
  const batch = indices(40).map(() => ({ user_id: userId, skill_id: userId, is_correct: true }));
  const track = async (i: number): Promise<number> => {
    const headers = { 'Idempotency-Key': `batch-${i >> 1}` };
    const caller = callerFor(i);
    const sent = i % 4 < 2 ? caller.trackAll(batch, headers) : caller.track(batch[0], headers);
    const { status, json } = await sent;
    assert.equal(status, 200, JSON.stringify(json));
    return i % 2 === 0 ? (json.data.accepted ?? 1) : 0;
  };
  const counted = computeSum(await Promise.all(indices(16).map(track)));
  assertChain(await waitForRows(userId, counted), counted);
});

/** Transactions since Redis started, on all nodes. */
async function countTransactions(): Promise<number> {
  const nodes = 'nodes' in redis ? redis.nodes('master') : [redis];
  const stats = await Promise.all(nodes.map((node) => node.info('commandstats')));
  const counts = stats.map((text) => Number(/^cmdstat_exec:calls=(\d+)/m.exec(text)?.[1] ?? 0));
  return computeSum(counts);
}

/** A learner in every batch, learners that often meet, and learners of one client. */
const learnersOf = (client: number, round: number): string[] => [
  'hot',
  ...Array.from({ length: 10 }, (_, i) => `shared-${(round + 3 * i) % 20}`),
  ...Array.from({ length: 20 }, (_, i) => `own-${client}-${i}`),
];

test('Services that write the same learners count each answer once, with few retries', async (t) => {
  const before = await countTransactions();
  const sent: { user_id: string }[] = [];
  const sendRounds = async (client: number): Promise<void> => {
    for (const round of indices(12)) {
      const answer = { skill_id: 'algebra', is_correct: round % 3 > 0, event_id: `${client}-${round}` };
      const events = learnersOf(client, round).map((user_id) => ({ user_id, ...answer }));
      sent.push(...events);
      assert.equal((await callerFor(client).trackAll(events)).status, 200);
    }
  };
  await Promise.all([0, 1, 2].map(sendRounds));
  const transactions = (await countTransactions()) - before;
  t.diagnostic(`${transactions} transactions for ${sent.length} answers`);
  // A step is halved down to single learners, and not retried endlessly.
  assert.ok(transactions < 2 * sent.length, `${transactions} transactions`);
  const counts = new Map<string, number>();
  for (const { user_id } of sent) counts.set(user_id, (counts.get(user_id) ?? 0) + 1);
  for (const [userId, count] of counts) {
    const { json } = await callers[0].get(`/api/v1/mastery/${userId}`);
    assert.equal(json.data.skills[0].total_attempts, count, userId);
  }
  const readCounts = async () => {
    const rows = await selectRows<{ user_id: string; counts: number[] }>(
      clickhouse,
      `SELECT user_id, [toUInt32(count()), toUInt32(uniqExact(event_id)), toUInt32(max(attempts.learner_seq))]
        AS counts FROM attempts WHERE skill_id = 'algebra' GROUP BY user_id`,
    );
    return new Map(rows.map((row) => [row.user_id, row.counts]));
  };
  const expected = new Map([...counts].map(([userId, count]) => [userId, [count, count, count]]));
  const stored = await askUntil('rows in ClickHouse', readCounts, (found) => {
    return computeSum([...found.values()].map(([rows = 0]) => rows)) >= sent.length;
  });
  assert.deepEqual(stored, expected);
});

test('Several lanes count a batch in its order and return the same results again', async () => {
  const events = indices(200).map((n) => ({
    ...{ user_id: `in order ${n % 7}`, skill_id: 'fractions', is_correct: true, event_id: `${n}` },
  }));
  const dataOf = async (): Promise<{ total_attempts: number }[]> =>
    (await callers[0].trackAll(events)).json.data.results.map(({ data }: { data: object }) => data);
  const first = await dataOf();
  for (const n of indices(200)) assert.equal(first[n]?.total_attempts, 1 + Math.floor(n / 7));
  assert.deepEqual(await dataOf(), first);
});
