/** A learner who is erased: nothing is left anywhere, the receipt says so, and others do not notice. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { hashLearner } from '../../src/contracts/learners/learner-name.js';
import { parseLearnerHash } from '../../src/contracts/webhooks/webhook-events.js';
import type { LearnerState } from '../../src/domain/tracing/learner-states.js';
import { CommitSession } from '../../src/store/learners/commit-session.js';
import { openHotConnections } from '../../src/store/redis/connection/hot-connection.js';
import {
  acceptedCountsKey,
  eventIdsKey,
  outboxKey,
  partitionOf,
  rareSkillsKey,
  removedCountsKey,
} from '../../src/store/redis/keys.js';
import { hashText } from '../../src/store/redis/wire/binary.js';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { askInTurn, erasureDone } from '../support/builders/learner-data.js';
import { callerOf, event, type JsonAnswer } from '../support/http/http.js';
import { keysThatSay, tablesThatSay } from '../support/inspect/traces.js';
import { listenFor } from '../support/servers/listener.js';
import { clickhouseOf, keysOf, redisOf, startService } from '../support/servers/service.js';
import { emptied } from '../support/wait.js';

const service = await startService({ after });
const caller = callerOf(service, service.key);
const redis = await redisOf({ after }, service.redisUrl);
const clickhouse = clickhouseOf({ after }, service);
const connections = openHotConnections(service.redisUrl, 0, async () => redis);
after(connections.close);

const erase = (user: string, as = caller) =>
  as.call({ method: 'DELETE', path: `/api/v1/learners/${encodeURIComponent(user)}` });
const partition = (user: string): number => partitionOf('default', user, 16);
const stored = (user: string) => emptied(redis, outboxKey(partition(user)));
const done = (url: string) => erasureDone(caller, url);
const attemptsBefore = ({ json }: JsonAnswer): number =>
  json.data.places.find(({ place }: { place: string }) => place === 'attempts').before;
const sumOf = async (key: string): Promise<number> =>
  Object.values(await redis.hgetall(key)).reduce((sum, n) => sum + Number(n), 0);

/** Sums of every rollup, without the learner's own. */
const skillDays = () =>
  selectRows<object>(
    clickhouse,
    'SELECT skill_id, toString(day) AS day, attempts, correct, learners FROM skill_daily ORDER BY skill_id, day',
  );

const answersOf = (user: string, n: number, name = 'e') =>
  Array.from({ length: n }, (_, i) =>
    event({
      user_id: user,
      skill_id: `skill-${i % 3}`,
      item_id: `item-${i}`,
      is_correct: i % 2 === 0,
      event_id: `${name}-${i}`,
      occurred_at: `2026-0${1 + (i % 4)}-02T03:04:05Z`,
    }),
  );

const listener = await listenFor(redis, 'default', ['mastery.reached', 'erasure.completed']);

/** Types of the messages, and whether they are the learner's. */
const toldOf = async (user: string) =>
  (await listener.told()).map(({ id, type }) => [
    type,
    parseLearnerHash(id) === hashLearner('default', user),
  ]);

test('everything goes, with a receipt that proves it, and a new history begins clean', async () => {
  const user = "gone '\\ ü";
  assert.equal((await caller.trackAll(answersOf('stays', 30))).status, 200);
  await stored('stays');
  const others = await skillDays();
  const reaching = answersOf(user, 40).map((answer) => ({ ...answer, is_correct: true }));
  assert.equal((await caller.trackAll(reaching)).status, 200);
  assert.deepEqual(
    (await toldOf(user)).filter(([, isOwn]) => isOwn),
    [0, 1, 2].map(() => ['mastery.reached', true]),
  );
  const goal = { method: 'PUT', path: `/api/v1/goals/${encodeURIComponent(user)}` } as const;
  const json = { 'Content-Type': 'application/json' };
  assert.equal((await caller.call({ ...goal, headers: json, body: '{"target_score":1200}' })).status, 200);
  assert.equal((await caller.get(`/api/v1/predictions/${encodeURIComponent(user)}`)).status, 200);
  await stored(user);
  const whoAnswered = () => redis.hgetBuffer(rareSkillsKey('default'), 'skill-0');
  assert.deepEqual(await whoAnswered(), Buffer.concat(['stays', user].map(hashText)));
  const ids = eventIdsKey(partition(user), 'default', user);
  assert.equal(await redis.exists(ids), 1);
  const begun = await erase(user);
  assert.equal(begun.status, 202);
  assert.equal(await redis.exists(ids), 0, 'in the same step');
  const { erasure_id: id, status_url: url } = begun.json.data;
  assert.equal(url, `/api/v1/erasures/${id}`);
  assert.equal((await caller.get(`/api/v1/mastery/${encodeURIComponent(user)}`)).status, 404);
  const again = await erase(user);
  assert.deepEqual([again.status, again.json.data.erasure_id], [202, id], 'asked for again it is the same');
  const { json: told } = await done(url);
  const places = Object.fromEntries(
    told.data.places.map((one: { place: string; before: number; after: number }) => [
      one.place,
      [one.before, one.after],
    ]),
  );
  assert.deepEqual(
    [places.attempts, places.learner_sums],
    [
      [40, 0],
      [40, 0],
    ],
  );
  assert.ok(told.data.removed.records >= 5 && told.data.removed.items === 40);
  assert.ok(Object.values(places).every((counts) => (counts as number[])[1] === 0));
  assert.deepEqual((await toldOf(user)).at(-1), ['erasure.completed', false]);
  assert.equal(
    (await toldOf(user)).some(([, isOwn]) => isOwn),
    false,
  );
  assert.equal(JSON.stringify(told).includes('gone'), false, 'the receipt does not say whom');
  const proof = await selectRows<{ remaining: string }>(clickhouse, told.data.proof.query, {
    params: {
      ...told.data.proof.parameters,
      user_id: user,
    },
  });
  assert.deepEqual(new Set(proof.map(({ remaining }) => Number(remaining))), new Set([0]));
  for (const text of ["gone '", 'gone \\u', "gone \\\\'"]) {
    assert.deepEqual(await keysThatSay(redis, text), []);
    assert.deepEqual(await tablesThatSay(clickhouse, text), {});
  }
  assert.deepEqual(await whoAnswered(), hashText('stays'));
  assert.deepEqual(await skillDays(), others, 'the sums of others are what they were');
  assert.equal(await sumOf(removedCountsKey(partition(user))), 40);
  assert.ok((await sumOf(acceptedCountsKey(partition(user)))) >= 40);
  const first = await caller.track(answersOf(user, 1)[0]);
  assert.deepEqual(
    [first.status, first.json.data.total_attempts, first.json.data.mastery_before],
    [200, 1, 0.3],
  );
  assert.equal(first.headers['idempotent-replayed'], undefined);
});

test('answers that arrive meanwhile are a new history, and stay', async () => {
  const user = 'returns';
  assert.equal((await caller.trackAll(answersOf(user, 20))).status, 200);
  const begun = await erase(user);
  assert.equal((await caller.trackAll(answersOf(user, 7, 'new'))).status, 200);
  assert.equal(attemptsBefore(await done(begun.json.data.status_url)), 20);
  await stored(user);
  const mastery = await caller.get(`/api/v1/mastery/${user}`);
  const counts = mastery.json.data.skills.map(
    ({ total_attempts }: { total_attempts: number }) => total_attempts,
  );
  assert.deepEqual(counts, [3, 2, 2]);
  const [row] = await selectRows<object>(
    clickhouse,
    `SELECT toUInt32(count()) AS rows, toUInt32(max(learner_seq)) AS last,
      toUInt32((SELECT sum(attempts) FROM learner_skill_daily WHERE user_id = {user:String})) AS days
     FROM attempts WHERE user_id = {user:String}`,
    { params: { user } },
  );
  assert.deepEqual(row, { rows: 7, last: 7, days: 7 });
  const second = await erase(user);
  assert.equal(attemptsBefore(await done(second.json.data.status_url)), 7);
  assert.deepEqual(await keysThatSay(redis, user), []);
  assert.deepEqual(await tablesThatSay(clickhouse, user), {});
});

test('events of the new history stay', async () => {
  const user = 'notified';
  const reach = (skillId: string) =>
    caller.trackAll(Array.from({ length: 10 }, () => event({ user_id: user, skill_id: skillId })));
  assert.equal((await reach('before')).status, 200);
  const begun = await erase(user);
  assert.equal((await reach('after')).status, 200);
  await done(begun.json.data.status_url);
  const own = (await listener.told()).filter(({ data }) => data.user_id === user);
  assert.deepEqual(
    own.map(({ data }) => data.skill_id),
    ['after'],
  );
});

test('a state of before is never committed, however far the new history has come', async () => {
  const user = 'raced';
  const place = { partition: partition(user), tenant: 'default', userId: user };
  const query = { ...place, skillIds: ['algebra'], eventIdHashes: [], itemHashes: [] };
  const answer = () => caller.track(event({ user_id: user }));
  assert.equal((await answer()).status, 200);
  const hot = await connections.forPartition(place.partition);
  const session = new CommitSession(hot, { maxOutboxRows: 1000, importId: null });
  const learner = (await session.load([query])).learners[0]?.learner as LearnerState;
  assert.equal((await erase(user)).status, 202);
  assert.equal((await answer()).status, 200);
  const commit = {
    ...place,
    learner: { ...learner, version: learner.version + 1 },
    ...{ skills: [], rows: ['a row of before'], arrivalDays: [1], ids: [], items: [] },
    ...{ itemGeneration: 0, importLine: 0, webhookEvents: [], goalCheckAt: null },
  };
  assert.deepEqual(await session.commit([commit]), ['conflict']);
  const { json } = await caller.get(`/api/v1/mastery/${user}`);
  assert.equal(json.data.skills[0].total_attempts, 1);
});

test('who is unknown, who may not, and what is of another tenant', async () => {
  const nobody = await erase('nobody');
  assert.deepEqual([nobody.status, nobody.json.error.code], [404, 'USER_NOT_FOUND']);
  for (const id of ['x', '3-x', '99999-00000000-0000-0000-0000-000000000000']) {
    const { status, json } = await askInTurn(() => caller.get(`/api/v1/erasures/${id}`));
    assert.deepEqual([status, json.error.code], [404, 'NOT_FOUND'], id);
  }
  assert.equal((await caller.trackAll(answersOf('mine', 3))).status, 200);
  const keys = await keysOf({ after }, service);
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  assert.equal((await erase('mine', other)).status, 404);
  const writer = callerOf(service, await keys.add({ scopes: ['read', 'write'] }));
  assert.equal((await erase('mine', writer)).status, 403);
  const begun = await erase('mine');
  const url = begun.json.data.status_url;
  assert.equal((await askInTurn(() => other.get(url))).status, 404);
  assert.equal((await writer.get(url)).status, 403);
  await done(url);
  assert.equal((await askInTurn(() => other.get(url))).status, 404);
});
