/** GET /learners/{user_id}/attempts: complete immediately after the answers, from Redis and ClickHouse. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { outboxKey, parkedKey, partitionOf } from '../../src/store/redis/keys.js';
import { askInTurn } from '../support/builders/learner-data.js';
import { callerOf, event, outcomeOf } from '../support/http/http.js';
import { readPages } from '../support/http/read-pages.js';
import { countOf } from '../support/inspect/warehouse.js';
import { clickhouseOf, keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { emptied } from '../support/wait.js';

const service = await sharedService();
const { tenant } = service;
const caller = callerOf(service, service.key);
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const user = "o'neil \\ ü";
const path = `/api/v1/learners/${encodeURIComponent(user)}/attempts`;
const outbox = outboxKey(partitionOf(tenant, user, 16));

const list = (query = '') => askInTurn(() => caller.get(path + query));

const answers = 25;
const answerOf = (i: number) =>
  event({
    user_id: user,
    skill_id: `skill'${i % 3}`,
    is_correct: i % 2 === 0,
    occurred_at: '2026-01-02T03:04:05.678Z',
    ...(i % 5 === 0 && { event_id: `e\\${i}`, item_id: 'item', time_spent_seconds: 12 }),
  });

type Listed = Record<string, unknown> & { learner_seq: number };
const seqs = (attempts: readonly Listed[]): number[] => attempts.map(({ learner_seq }) => learner_seq);
const countdown = (from: number, to: number): number[] =>
  Array.from({ length: from - to + 1 }, (_, i) => from - i);

before(async () => {
  const events = Array.from({ length: answers }, (_, i) => answerOf(i));
  assert.equal((await caller.trackAll(events)).status, 200);
  const { json } = await list();
  assert.deepEqual(seqs(json.data.attempts), countdown(answers, 1), 'the first list is incomplete');
  await emptied(redis, outbox);
});

test('The list of attempts has every field of an answer, and null for missing ones', async () => {
  const { status, json } = await list();
  assert.equal(status, 200);
  assert.deepEqual([json.data.user_id, json.data.total_attempts, json.data.missing], [user, answers, 0]);
  const [newest] = json.data.attempts;
  const full = json.data.attempts.find((one: Listed) => one.learner_seq === 21);
  const { mastery_before, mastery_after, p_correct, received_at } = full;
  assert.deepEqual(full, {
    ...full,
    ...{
      event_id: 'e\\20',
      skill_id: "skill'2",
      skill_ids: ["skill'2"],
      item_id: 'item',
      is_correct: true,
      plateau_detected: false,
    },
    ...{ time_spent_seconds: 12, confidence_score: null, question_difficulty: null, parameters_version: 0 },
    occurred_at: '2026-01-02T03:04:05.678Z',
  });
  assert.ok(mastery_after > mastery_before && p_correct > 0 && Date.parse(received_at) > 0);
  assert.deepEqual([newest.event_id, newest.item_id, newest.time_spent_seconds], [null, null, null]);
});

test('Pages of attempts have no gap and no duplicate, also if answers arrive between them', async () => {
  let page = 0;
  const read = async (query: string) => {
    if (page++ === 1) assert.equal((await caller.track(event({ user_id: 'else' }))).status, 200);
    return list(query);
  };
  const pages = await readPages<Listed>(read, 'attempts', 7);
  assert.deepEqual(seqs(pages.flat()), countdown(answers, 1));
  const { json } = await list('?limit=25');
  assert.equal(json.data.next_cursor, null, 'a page that ends with the first answer is not the last');
});

test('The list of attempts rejects unknown learners and foreign keys', async () => {
  assert.equal(outcomeOf(await caller.get('/api/v1/learners/nobody/attempts')), '404 USER_NOT_FOUND');
  const keys = await keysOf({ after }, service);
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  assert.equal((await other.get(path)).status, 404);
  const writer = callerOf(service, await keys.add({ scopes: ['write'] }));
  assert.equal((await writer.get(path)).status, 403);
});

test('The list of attempts prefers rows in Redis and hides rows beyond the count in Redis', async () => {
  const columns =
    'partition_id, outbox_ms, outbox_seq, tenant, user_id, skill_id, item_id, event_id, learner_seq';
  await clickhouse.command({
    query: `INSERT INTO attempts (${columns}) VALUES
      (99, 1, 0, {tenant:String}, {user:String}, 'older', '', '', 25),
      (99, 2, 0, {tenant:String}, {user:String}, 'beyond', '', '', 26)`,
    query_params: { tenant, user },
  });
  assert.equal(await countOf(clickhouse, "attempts WHERE skill_id IN ('older', 'beyond')"), 2);
  const stored = await list('?limit=2');
  assert.deepEqual(valuesOf(stored.json.data.attempts, 'skill_id'), ["skill'0", "skill'2"]);
  const rowOf = (skill: string) =>
    `${tenant}\to'neil \\\\ ü\t${skill}\t\t\t1\t\\N\t\\N\t\\N\t1.000\t2.000\t24\t0.3\t0.4\t0.5\t0\t0.3\t0.1\t0.2\t0.1\t0\t0\t1\tdefault\t0\t0\t0\t0\t0\t0\t0.75\t0\t\\N\t\t\t1\t\\N\t\\N\t0\t1\t[]\t1970-01-01\tUTC`;
  const parked = await redis.xadd(parkedKey(outbox), '*', 'r', rowOf('parked'), 'id', '1-1', 'reason', 'x');
  const unreadable = `${tenant}\to'neil \\\\ ü\tnonsense`;
  await redis.xadd(parkedKey(outbox), '*', 'r', unreadable, 'id', '1-2', 'reason', 'x');
  const withParked = await list('?limit=2');
  assert.equal(withParked.json.data.attempts[1].skill_id, 'parked');
  assert.equal(await redis.xdel(parkedKey(outbox), `${parked}`), 1);
});

test('The list of attempts counts answers that are stored nowhere as missing', async () => {
  await clickhouse.command({
    query:
      'DELETE FROM attempts WHERE tenant = {tenant:String} AND user_id = {user:String} AND learner_seq IN (1, 10)',
    query_params: { tenant, user },
  });
  const { json } = await list('?limit=10');
  assert.deepEqual([json.data.attempts.length, json.data.missing], [10, 0]);
  const rest = await list(`?cursor=${json.data.next_cursor}`);
  assert.deepEqual([rest.json.data.attempts.length, rest.json.data.missing], [13, 2]);
  assert.equal(rest.json.data.next_cursor, null);
});
