/** Goals: set, read and taken away, and conditions on their tags. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import {
  type Caller,
  callerOf,
  event,
  type JsonAnswer,
  jsonOf,
  type RequestParts,
} from '../support/http/http.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, service.key);

async function call(by: Caller, parts: RequestParts): Promise<JsonAnswer> {
  const answer = await by.raw(parts);
  return { ...answer, json: jsonOf(answer) };
}

const path = (userId: string): string => `/api/v1/goals/${encodeURIComponent(userId)}`;
const put = (userId: string, body: unknown, headers: RequestParts['headers'] = {}, by = caller) =>
  call(by, { method: 'PUT', path: path(userId), body: JSON.stringify(body), headers });
const remove = (userId: string, headers: RequestParts['headers'] = {}, by = caller) =>
  call(by, { method: 'DELETE', path: path(userId), headers });
const get = (userId: string, by = caller) => by.get(path(userId));

const told = ({ status, json }: JsonAnswer): [number, string] => [status, json.error?.code];
const dayIn = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
const strongTag = /^"[^"]+"$/;

test('a goal is set before the first answer, read, replaced and taken away', async () => {
  const userId = 'ünïcode/🙂';
  assert.deepEqual(told(await get(userId)), [404, 'GOAL_NOT_FOUND']);
  const target_date = dayIn(90);
  const set = await put(userId, { target_score: 1400, target_date });
  assert.equal(set.status, 200);
  const { updated_at } = set.json.data;
  assert.ok(Math.abs(Date.parse(updated_at) - Date.now()) < 60_000);
  assert.deepEqual(set.json.data, { user_id: userId, target_score: 1400, target_date, updated_at });
  const read = await get(userId);
  assert.deepEqual(read.json.data, set.json.data);
  assert.match(read.headers.etag ?? '', strongTag);
  assert.equal(read.headers.etag, set.headers.etag);
  assert.equal((await caller.head(path(userId))).headers.etag, set.headers.etag);

  const again = await put(userId, { target_score: 1400 });
  assert.equal(again.json.data.target_date, null);
  assert.ok(again.json.data.updated_at > updated_at);
  assert.notEqual(again.headers.etag, set.headers.etag);

  const removed = await remove(userId);
  assert.equal(removed.status, 200);
  assert.deepEqual(removed.json.data, {
    user_id: userId,
    target_score: null,
    target_date: null,
    updated_at: removed.json.data.updated_at,
  });
  assert.ok(removed.json.data.updated_at > again.json.data.updated_at);
  assert.deepEqual(told(await get(userId)), [404, 'GOAL_NOT_FOUND']);
  assert.deepEqual(told(await remove(userId)), [404, 'GOAL_NOT_FOUND']);
});

test('a goal alone makes no learner, and answers leave it alone', async () => {
  await put('early', { target_score: 800 });
  for (const place of ['mastery/early', 'predictions/early']) {
    assert.deepEqual(told(await caller.get(`/api/v1/${place}`)), [404, 'USER_NOT_FOUND']);
  }
  assert.equal((await caller.track(event({ user_id: 'early' }))).json.data.total_attempts, 1);
  assert.equal((await get('early')).json.data.target_score, 800);
  const { skills } = (await caller.get('/api/v1/mastery/early')).json.data;
  assert.equal(skills.length, 1);
  const prediction = await caller.get('/api/v1/predictions/early');
  assert.equal(prediction.json.data.goal_tracking.target_score, 800);
  assert.equal(prediction.json.data.goal_tracking.is_set, true);
});

const bad: readonly (readonly [unknown, string])[] = [
  [{}, 'target_score'],
  [{ target_score: null }, 'target_score'],
  [{ target_score: '1400' }, 'target_score'],
  [{ target_score: 390 }, 'target_score'],
  [{ target_score: 1610 }, 'target_score'],
  [{ target_score: 1405 }, 'target_score'],
  [{ target_score: 1400.5 }, 'target_score'],
  [{ target_score: 1400, target_date: 20 }, 'target_date'],
  [{ target_score: 1400, target_date: '' }, 'target_date'],
  [{ target_score: 1400, target_date: 'tomorrow' }, 'target_date'],
  [{ target_score: 1400, target_date: '2099-02-29' }, 'target_date'],
  [{ target_score: 1400, target_date: '2099-13-01' }, 'target_date'],
  [{ target_score: 1400, target_date: '2099-1-1' }, 'target_date'],
  [{ target_score: 1400, target_date: '2099-01-01T00:00:00Z' }, 'target_date'],
  [{ target_score: 1400, target_date: dayIn(-1) }, 'target_date'],
  [[], ''],
  [null, ''],
];

test('bodies that set no goal', async () => {
  for (const [body, field] of bad) {
    const answer = await put('nobody', body);
    assert.deepEqual(told(answer), [400, 'INVALID_REQUEST'], JSON.stringify(body));
    assert.equal(answer.json.error.details[0].path, field, JSON.stringify(body));
  }
  const parts = { method: 'PUT', path: path('nobody') };
  assert.equal((await call(caller, { ...parts, body: '{' })).status, 400);
  const text = { 'Content-Type': 'text/plain' };
  assert.equal((await call(caller, { ...parts, body: '{}', headers: text })).status, 415);
  const packed = { 'Content-Encoding': 'gzip' };
  assert.equal((await call(caller, { ...parts, body: '{}', headers: packed })).status, 415);
  assert.equal((await call(caller, { ...parts, body: `"${'x'.repeat(17_000)}"` })).status, 413);
  assert.deepEqual(told(await get('nobody')), [404, 'GOAL_NOT_FOUND']);
});

test('bounds, today, and what equals absence', async () => {
  for (const body of [
    { target_score: 400 },
    { target_score: 1600, target_date: null },
    { target_score: 1000, target_date: dayIn(1), user_id: 'other', updated_at: 'never' },
    { target_score: 1000, target_date: '9999-12-31' },
  ]) {
    assert.equal((await put('bounds', body)).status, 200, JSON.stringify(body));
  }
});

test('a goal whose date has passed is still there', async () => {
  const partition = partitionOf(service.tenant, 'late', 16);
  const stored = '{"v":1,"updatedAt":1700000000000,"targetScore":1200,"targetDate":"2023-12-01"}';
  await redis.hset(learnerKey(partition, service.tenant, 'late'), 'G', stored);
  const { json } = await get('late');
  assert.deepEqual(json.data, {
    user_id: 'late',
    target_score: 1200,
    target_date: '2023-12-01',
    updated_at: '2023-11-14T22:13:20.000Z',
  });
  assert.deepEqual(told(await put('late', json.data)), [400, 'INVALID_REQUEST']);
});

test('If-Match: a goal that somebody else changed is not overwritten', async () => {
  const tag = (await put('shared', { target_score: 1000 })).headers.etag as string;
  assert.equal((await put('shared', { target_score: 1010 }, { 'If-Match': `"x", ${tag}` })).status, 200);
  const stale = await put('shared', { target_score: 1020 }, { 'If-Match': tag });
  assert.deepEqual(told(stale), [412, 'PRECONDITION_FAILED']);
  assert.deepEqual(told(await remove('shared', { 'If-Match': tag })), [412, 'PRECONDITION_FAILED']);
  const { headers, json } = await get('shared');
  assert.equal(json.data.target_score, 1010);
  const weak = await put('shared', { target_score: 1030 }, { 'If-Match': `W/${headers.etag}` });
  assert.deepEqual(told(weak), [412, 'PRECONDITION_FAILED']);
  assert.equal((await put('shared', { target_score: 1040 }, { 'If-Match': '*' })).status, 200);
  assert.equal((await remove('shared', { 'If-Match': '*' })).status, 200);
  for (const condition of ['*', '"any"', headers.etag as string]) {
    const absent = await put('shared', { target_score: 1050 }, { 'If-Match': condition });
    assert.deepEqual(told(absent), [412, 'PRECONDITION_FAILED'], condition);
    assert.deepEqual(told(await remove('shared', { 'If-Match': condition })), [404, 'GOAL_NOT_FOUND']);
  }
  for (const condition of ['', 'any', '"a" "b"', '*, "a"']) {
    const malformed = await put('shared', { target_score: 1050 }, { 'If-Match': condition });
    assert.deepEqual(told(malformed), [400, 'INVALID_REQUEST'], condition);
  }
  // Nothing is read from it where it means nothing.
  assert.equal((await caller.get('/api/v1/goals/early', { 'If-Match': 'any' })).status, 200);
});

test('of twenty writers with the same tag one wins', async () => {
  const tag = (await put('contested', { target_score: 1000 })).headers.etag as string;
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => put('contested', { target_score: 1100 }, { 'If-Match': tag })),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  assert.equal(answers.filter(({ status }) => status === 412).length, 19);
});

test('tenants, scopes, keys and methods', async () => {
  await put('own', { target_score: 1000 });
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  assert.deepEqual(told(await get('own', other)), [404, 'GOAL_NOT_FOUND']);
  assert.deepEqual(told(await remove('own', {}, other)), [404, 'GOAL_NOT_FOUND']);
  assert.equal((await put('own', { target_score: 1200 }, {}, other)).status, 200);
  assert.equal((await get('own')).json.data.target_score, 1000);

  const reader = callerOf(service, await keys.add({ scopes: ['read'] }));
  assert.equal((await get('own', reader)).status, 200);
  assert.deepEqual(told(await put('own', {}, {}, reader)), [403, 'FORBIDDEN']);
  assert.deepEqual(told(await remove('own', {}, reader)), [403, 'FORBIDDEN']);
  const writer = callerOf(service, await keys.add({ scopes: ['write'] }));
  assert.deepEqual(told(await get('own', writer)), [403, 'FORBIDDEN']);
  assert.equal((await put('own', { target_score: 1010 }, {}, writer)).status, 200);
  assert.equal((await remove('own', {}, writer)).status, 200);
  assert.deepEqual(told(await get('own', callerOf(service, null))), [401, 'UNAUTHORIZED']);

  const posted = await call(caller, { method: 'POST', path: path('own'), body: '{}' });
  assert.deepEqual([posted.status, posted.headers.allow], [405, 'GET, HEAD, PUT, DELETE']);
  assert.deepEqual(told(await caller.get('/api/v1/goals/%00')), [400, 'INVALID_REQUEST']);
});
