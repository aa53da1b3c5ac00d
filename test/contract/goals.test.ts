/** Goals of learners: set, read, delete, and conditional writes. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { timeAgo } from '../support/builders/day.js';
import { callerOf, event, outcomeOf, type RequestParts } from '../support/http/http.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, service.key);

const path = (userId: string): string => `/api/v1/goals/${encodeURIComponent(userId)}`;
const put = (userId: string, body: unknown, headers: RequestParts['headers'] = {}, by = caller) =>
  by.send('PUT', path(userId), body, headers);
const remove = (userId: string, headers: RequestParts['headers'] = {}, by = caller) =>
  by.send('DELETE', path(userId), undefined, headers);
const get = (userId: string, by = caller) => by.get(path(userId));

const unknownGoal = '404 GOAL_NOT_FOUND';
const invalid = '400 INVALID_REQUEST';
const mismatch = '412 PRECONDITION_FAILED';
const dayIn = (days: number): string => timeAgo(-days).slice(0, 10);

test('PUT, GET and DELETE /goals/{user_id} set, return and remove a goal before the first answer', async () => {
  const userId = 'ünïcode/🙂';
  assert.equal(outcomeOf(await get(userId)), unknownGoal);
  const target_date = dayIn(90);
  const set = await put(userId, { target_score: 1400, target_date });
  const { updated_at } = set.json.data;
  assert.ok(Math.abs(Date.parse(updated_at) - Date.now()) < 60_000);
  assert.deepEqual(set.json.data, { user_id: userId, target_score: 1400, target_date, updated_at });
  const read = await get(userId);
  assert.deepEqual(read.json.data, set.json.data);
  assert.match(read.headers.etag ?? '', /^"[^"]+"$/);
  assert.equal(read.headers.etag, set.headers.etag);
  assert.equal((await caller.head(path(userId))).headers.etag, set.headers.etag);

  const again = await put(userId, { target_score: 1400 });
  assert.equal(again.json.data.target_date, null);
  assert.ok(again.json.data.updated_at > updated_at);
  assert.notEqual(again.headers.etag, set.headers.etag);

  const removed = await remove(userId);
  const removedAt = removed.json.data.updated_at;
  const empty = { user_id: userId, target_score: null, target_date: null, updated_at: removedAt };
  assert.deepEqual([removed.status, removed.json.data], [200, empty]);
  assert.ok(removedAt > again.json.data.updated_at);
  assert.equal(outcomeOf(await get(userId)), unknownGoal);
  assert.equal(outcomeOf(await remove(userId)), unknownGoal);
});

test('PUT /goals/{user_id} creates no learner, and the first answer keeps the goal', async () => {
  await put('early', { target_score: 800 });
  for (const call of ['mastery/early', 'predictions/early'])
    assert.equal(outcomeOf(await caller.get(`/api/v1/${call}`)), '404 USER_NOT_FOUND');
  assert.equal((await caller.track(event({ user_id: 'early' }))).json.data.total_attempts, 1);
  assert.equal((await get('early')).json.data.target_score, 800);
  assert.equal((await caller.get('/api/v1/mastery/early')).json.data.skills.length, 1);
  const { goal_tracking } = (await caller.get('/api/v1/predictions/early')).json.data;
  assert.deepEqual([goal_tracking.target_score, goal_tracking.is_set], [800, true]);
});

const withDate = (target_date: unknown) => ({ target_score: 1400, target_date });
const invalidBodies: readonly (readonly [unknown, string])[] = [
  ...[undefined, null, '1400', 390, 1610, 1405, 1400.5].map(
    (target_score) => [{ target_score }, 'target_score'] as const,
  ),
  ...[20, '', 'tomorrow', '2099-02-29', '2099-13-01', '2099-1-1', '2099-01-01T00:00:00Z', dayIn(-1)].map(
    (date) => [withDate(date), 'target_date'] as const,
  ),
  ...[[], null].map((body) => [body, ''] as const),
];

test('PUT /goals/{user_id} rejects scores and dates out of range and names the field', async () => {
  for (const [body, field] of invalidBodies) {
    const answer = await put('unset', body);
    assert.equal(outcomeOf(answer), invalid, JSON.stringify(body));
    assert.equal(answer.json.error.details[0].path, field, JSON.stringify(body));
  }
  assert.equal((await put('unset', 'x'.repeat(17_000))).status, 413);
  assert.equal(outcomeOf(await get('unset')), unknownGoal);
  for (const body of [
    { target_score: 400 },
    { target_score: 1600, target_date: null },
    { ...withDate(dayIn(1)), user_id: 'other', updated_at: 'never' },
    withDate('9999-12-31'),
  ])
    assert.equal((await put('limits', body)).status, 200, JSON.stringify(body));
});

test('GET /goals/{user_id} returns a goal after its date, which PUT does not accept', async () => {
  const partition = partitionOf(service.tenant, 'late', 16);
  const stored = '{"v":1,"updatedAt":1700000000000,"targetScore":1200,"targetDate":"2023-12-01"}';
  await redis.hset(learnerKey(partition, service.tenant, 'late'), 'G', stored);
  const { json } = await get('late');
  const goal = { target_score: 1200, target_date: '2023-12-01', updated_at: '2023-11-14T22:13:20.000Z' };
  assert.deepEqual(json.data, { user_id: 'late', ...goal });
  assert.equal(outcomeOf(await put('late', json.data)), invalid);
});

test('PUT and DELETE /goals/{user_id} compare If-Match with the current version, also for concurrent writes', async () => {
  const userId = 'conditional';
  const putIf = (score: number, tag: string) => put(userId, { target_score: score }, { 'If-Match': tag });
  const removeIf = (tag: string) => remove(userId, { 'If-Match': tag });
  const tag = (await put(userId, { target_score: 1000 })).headers.etag as string;
  assert.equal((await putIf(1010, `"x", ${tag}`)).status, 200);
  assert.equal(outcomeOf(await putIf(1020, tag)), mismatch);
  assert.equal(outcomeOf(await removeIf(tag)), mismatch);
  const { headers, json } = await get(userId);
  const current = headers.etag as string;
  assert.equal(json.data.target_score, 1010);
  assert.equal(outcomeOf(await putIf(1030, `W/${current}`)), mismatch);
  const writes = await Promise.all(Array.from({ length: 20 }, () => putIf(1100, current)));
  assert.deepEqual(writes.map(outcomeOf).sort(), ['200', ...Array(19).fill(mismatch)]);
  assert.equal((await putIf(1040, '*')).status, 200);
  assert.equal((await removeIf('*')).status, 200);
  for (const condition of ['*', '"any"', current]) {
    assert.equal(outcomeOf(await putIf(1050, condition)), mismatch, condition);
    assert.equal(outcomeOf(await removeIf(condition)), unknownGoal);
  }
  assert.equal(outcomeOf(await putIf(1050, '*, "a"')), invalid);
  // GET ignores the header.
  assert.equal((await caller.get(path('early'), { 'If-Match': 'any' })).status, 200);
});

test('A forecast stores the status of the goal, and keeps it after a small change', async () => {
  const user_id = 'tracked';
  const answers = Array.from({ length: 30 }, (_, i) => event({ user_id, is_correct: i % 3 > 0 }));
  assert.equal((await caller.trackAll(answers)).status, 200);
  const trackingOf = async (userId: string) =>
    (await caller.get(`/api/v1/predictions/${userId}`)).json.data.goal_tracking;
  assert.equal((await trackingOf(user_id)).status, 'none');
  const key = learnerKey(partitionOf(service.tenant, user_id, 16), service.tenant, user_id);
  const readStored = async (): Promise<string> => (await redis.hget(key, 'G')) ?? '';
  let tag: string | undefined;
  const putGoal = async (target_score: number): Promise<number> => {
    const { status, headers } = await put(user_id, { target_score });
    assert.equal(status, 200);
    tag = headers.etag;
    return (await trackingOf(user_id)).goal_probability;
  };
  const targets = Array.from({ length: 60 }, (_, i) => 900 + 10 * i);
  for (const target of targets) if ((await putGoal(target)) < 0.5) break;
  const { goal_probability } = await trackingOf(user_id);
  assert.ok(goal_probability > 0.42, `${goal_probability}`);
  const first = 'at_risk';
  assert.match(
    await askUntil('a stored status', readStored, (text) => text.includes('status')),
    RegExp(first),
  );
  assert.equal((await get(user_id)).headers.etag, tag, 'the status does not change the version');
  for (const [stored, shown] of [
    ...['on_track', 'at_risk'].map((status) => [status, status] as const),
    ...[['unlikely', 'at_risk'] as const, ['expired', first] as const],
  ]) {
    await redis.hset(key, 'G', (await readStored()).replace(/"status":"\w+"/, `"status":"${stored}"`));
    for (const path of [`predictions/${user_id}`, `predictions/${user_id}?days=90`])
      assert.equal((await caller.get(`/api/v1/${path}`)).json.data.goal_tracking.status, shown);
    await askUntil('the new status', readStored, (text) => text.includes(`"${shown}"`));
  }
  const { text } = await caller.raw({ method: 'GET', path: `/api/v1/learners/${user_id}/export` });
  assert.match(text, RegExp(`"status":"${first}"`));
  assert.equal((await put(user_id, { target_score: 1600 }, { 'If-Match': tag ?? '' })).status, 200);
  assert.doesNotMatch(await readStored(), /status/);
  assert.equal((await trackingOf(user_id)).status, 'unlikely');
  await redis.hset(key, 'G', (await readStored()).replace('"targetDate":null', '"targetDate":"2024-01-01"'));
  const late = (await caller.get(`/api/v1/predictions/${user_id}`)).json.data;
  assert.equal(late.goal_tracking.status, 'expired');
  assert.match(
    late.recommendations[0],
    /^The goal date 2024-01-01 has passed, \d+ points below 1600: set a new goal\.$/,
  );
  await putGoal(400);
  assert.equal((await trackingOf(user_id)).status, 'reached');
});

test('PUT and DELETE /goals/{user_id} separate the tenants', async () => {
  await put('own', { target_score: 1000 });
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  assert.equal(outcomeOf(await remove('own', {}, other)), unknownGoal);
  assert.equal((await put('own', { target_score: 1200 }, {}, other)).status, 200);
  assert.equal((await get('own')).json.data.target_score, 1000);
});
