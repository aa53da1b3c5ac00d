/** GET /api/v1/live/history, and the figures that processes store each minute. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { allScopes, hashKey, toKeyId } from '../../src/contracts/access/access.js';
import { indices } from '../../src/lists.js';
import { createMinuteStore, type StoredMinute } from '../../src/store/operations/minute-store.js';
import { minutesKey } from '../../src/store/redis/keys.js';
import { callerOf, event } from '../support/http/http.js';
import { keysOf, redisOf, startSecondApi, startService } from '../support/servers/service.js';
import { waitUntilNoAudit } from '../support/wait.js';

const service = await startService({ after });
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const operatorKey = await keys.add({ tenant: 'office', scopes: allScopes });
const operator = callerOf(service, operatorKey);
const read = async (query = '') => (await operator.get(`/api/v1/live/history${query}`)).json.data;
const idOf = (key: string): string => toKeyId(hashKey(key));
const currentMinute = Math.floor(Date.now() / 60_000);

const createMinute = (minute: number, change: Partial<StoredMinute> = {}): StoredMinute => ({
  ...{ minute, answers: 60, statuses: { 200: 120 }, buckets: { 0.005: 90, 0.01: 100, '+Inf': 100 } },
  ...{ keys: {}, ...change },
});

/** Writes minutes with the ids that Redis assigned in the past. */
async function store(minutes: readonly StoredMinute[]): Promise<void> {
  await redis.del(minutesKey);
  for (const [i, minute] of minutes.entries())
    await redis.xadd(minutesKey, `${(minute.minute + 1) * 60_000}-${i + 1}`, 'm', JSON.stringify(minute));
}

test('The history sums the processes of a minute and averages steps of 1, 5 and 15 minutes', async () => {
  const start = Math.floor(currentMinute / 15) * 15 - 30;
  const one = indices(15).map((i) => createMinute(start + i));
  const other = createMinute(start, { answers: 540, statuses: { 200: 540, 429: 60 } });
  await store([...one, other].sort((a, b) => a.minute - b.minute));
  const hour = await read();
  assert.deepEqual([hour.hours, hour.step_minutes, hour.points.length], [1, 1, 15]);
  assert.deepEqual(hour.points[0], {
    at: new Date(start * 60_000).toISOString(),
    ...{ answers_per_second: 10, requests_per_second: 12, errors: { 429: 1 } },
    latency_ms: { p50: 2.8, p90: 5, p99: 9.5 },
  });
  assert.deepEqual([hour.points[1].answers_per_second, hour.points[1].errors], [1, {}]);
  const six = await read('?hours=6');
  assert.deepEqual(
    six.points.map((point: { answers_per_second: number }) => point.answers_per_second),
    [2.8, 1, 1],
  );
  const day = await read('?hours=24');
  assert.deepEqual([day.step_minutes, day.points.length, day.points[0].requests_per_second], [15, 1, 2.667]);
  for (const hours of ['0', '25', 'x'])
    assert.equal((await operator.get(`/api/v1/live/history?hours=${hours}`)).status, 400);
});

test('The history lists the ten busiest keys with names, without the keys', async () => {
  const secret = 'a-secret-key';
  await keys.store.save({
    ...{ keyHash: hashKey(secret), tenant: 'school', scopes: ['read'], requestsPerMinute: 1 },
    ...{ development: false, name: '<script>alert(1)</script>' },
  });
  const counts = Object.fromEntries(
    indices(12).map((i) => [idOf(`k${i}`), [i, 0, 0, 0] as [number, number, number, number]]),
  );
  await store([
    createMinute(currentMinute - 3, { keys: { [idOf(secret)]: [70, 40, 5, 9] } }),
    createMinute(currentMinute - 2, { keys: { ...counts, [idOf(secret)]: [30, 2, 1, 1] } }),
  ]);
  const { keys: shown } = await read();
  assert.equal(shown.length, 10);
  assert.deepEqual(shown[0], {
    ...{ key_id: idOf(secret), name: '<script>alert(1)</script>', tenant: 'school' },
    ...{ requests: 100, answers: 42, errors: 6, rejected: 10 },
  });
  assert.deepEqual([shown[1].key_id, shown[1].name, shown[1].requests], [idOf('k11'), null, 11]);
  assert.doesNotMatch(JSON.stringify(shown), new RegExp(hashKey(secret)));
});

test('The store keeps 24 hours', async () => {
  await redis.del(minutesKey);
  const { append, readSince } = createMinuteStore(redis);
  const old = { ...createMinute(currentMinute - 3000), statuses: {} };
  await redis.xadd(minutesKey, `${old.minute * 60_000}-1`, 'm', JSON.stringify(old));
  // Redis trims whole nodes of about 100 entries.
  for (const i of indices(250))
    await redis.xadd(minutesKey, `${(old.minute + i + 1) * 60_000}-1`, 'm', JSON.stringify(old));
  await append(createMinute(currentMinute));
  assert.ok((await redis.xlen(minutesKey)) < 110);
  assert.equal((await readSince(currentMinute - 60)).length, 1);
});

test('A process stores its last minute and the last use of its keys when it stops', async (t) => {
  await redis.del(minutesKey);
  const second = await startSecondApi(t, service);
  const key = await keys.add({ tenant: 'school', quota: 4 });
  const caller = callerOf(second, key);
  assert.equal((await caller.track(event())).status, 200);
  const twice = event({ event_id: 'twice' });
  const batch = await caller.trackAll([twice, twice]);
  assert.equal(batch.status, 200);
  assert.equal((await caller.track({ user_id: 'incomplete' })).status, 400);
  assert.equal((await caller.get('/api/v1/erasures/unknown')).status, 404);
  assert.equal((await caller.get('/api/v1/skills')).status, 429);
  const before = Date.now();
  await second.stop();
  const { points, keys: traffic } = await read();
  const own = traffic.find(({ key_id }: { key_id: string }) => key_id === idOf(key));
  assert.deepEqual(
    [own.requests, own.answers, own.errors, own.rejected, own.tenant],
    [5, 2, 2, 1, keys.nameOf('school')],
  );
  const sum = points.reduce(
    (all: number, point: { errors: Record<string, number> }) => all + (point.errors[400] ?? 0),
    0,
  );
  assert.ok(sum > 0 && points.some(({ latency_ms }: { latency_ms: object | null }) => latency_ms !== null));
  const lastUse = (await keys.store.readLastUses()).get(hashKey(key)) ?? 0;
  assert.ok(lastUse >= before - 1000 && lastUse <= Date.now());
  const listed = (await operator.get('/api/v1/keys')).json.data.keys;
  const shown = listed.find(({ key_id }: { key_id: string }) => key_id === idOf(key));
  assert.equal(shown.last_used_at, new Date(lastUse).toISOString());
});

test('POST /audits starts one audit at a time, also over processes', async (t) => {
  const second = await startSecondApi(t, service);
  const secondCaller = callerOf(second, operatorKey);
  const [one, other] = await Promise.all(
    [operator, secondCaller].map((caller) => caller.send('POST', '/api/v1/audits')),
  );
  assert.deepEqual([one?.status, other?.status].sort(), [202, 409]);
  const readAudit = async () => (await operator.get('/api/v1/audits')).json.data;
  assert.equal((await readAudit()).running, true);
  await waitUntilNoAudit(operator);
  const { running, last } = await readAudit();
  assert.deepEqual([running, last.mismatches], [false, []]);
  assert.equal((await secondCaller.send('POST', '/api/v1/audits')).status, 202, 'the lock is not released');
  await second.stop();
  assert.equal((await readAudit()).running, false, 'a stopped process keeps the lock');
});
