/** Redis is paused, stopped, killed or replaced by an empty one while the service runs. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { callerOf, event, type JsonAnswer } from '../support/http/http.js';
import { clickhouseOf, keysOf, redisOf, startBareRedis, startService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const redis = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl: redis.url });
const keys = await keysOf({ after }, service);
const clickhouse = clickhouseOf({ after }, service);
const caller = callerOf(service, service.key);
const stranger = callerOf(service, null);
const unknown = callerOf(service, 'unknown-key');

/** How long the service trusts a key that it looked up. */
const keyTrustMs = 2000;

const isServing = async (): Promise<boolean> => (await caller.track(event())).status === 200;
const countAttempts = async (user_id: unknown): Promise<number> =>
  (await caller.get(`/api/v1/mastery/${user_id}`)).json.data.skills[0].total_attempts;

async function assertUnavailable(): Promise<void> {
  const responses = await Promise.all([
    caller.track(event({ event_id: 'unavailable' })),
    caller.trackAll([event(), event()]),
    caller.get('/api/v1/mastery/before'),
    caller.get('/api/v1/predictions/before'),
    unknown.track(event()),
  ]);
  for (const { status, headers, json } of responses) {
    assert.deepEqual([status, json.success, json.error.code], [503, false, 'UNAVAILABLE']);
    assert.match(headers['retry-after'] ?? '', /^\d+$/);
  }
  const health = await stranger.get('/api/v1/health');
  assert.deepEqual([health.status, health.json.success, health.json.data.status], [503, false, 'down']);
  assert.equal(health.json.error.code, 'UNAVAILABLE');
  assert.ok(health.json.data.checks.redis.reason);
  const ready = await stranger.get('/readyz');
  assert.equal(ready.status, 503);
  assert.ok(ready.json.reasons.length > 0);
  assert.equal((await stranger.get('/livez')).status, 200);
}

test('The service restores its keys if Redis comes back empty before the first answer', async () => {
  assert.equal((await caller.get('/api/v1/skills')).status, 200);
  await redis.kill();
  await redis.start();
  await sleep(keyTrustMs + 500);
  await waitFor('the key', async () => (await caller.get('/api/v1/skills')).status === 200);
});

/** A batch of one answer with the maximum size: eighteen of them fill every lane. */
const largeBatch = (n: number) =>
  caller.call({
    path: '/api/v1/track-answers',
    body: `{"events":[${JSON.stringify(event({ user_id: 'ada', event_id: `${n}` }))}${' '.repeat(1_000_000)}]}`,
  });
const batchCount = 24;
/** Shorter than the timeout of Redis commands. */
const pauseMs = 4000;

/** Fills the lanes while Redis executes no writes. @returns rejections of further answers, if any in time */
async function overload(): Promise<readonly JsonAnswer[]> {
  await waitFor('the service', isServing);
  const client = await redisOf({ after }, redis.url);
  await client.call('CLIENT', 'PAUSE', pauseMs, 'WRITE');
  const batches = Promise.all(Array.from({ length: batchCount }, (_, n) => largeBatch(n)));
  let rejections: readonly JsonAnswer[] = [];
  for (const since = performance.now(); performance.now() - since < pauseMs; ) {
    const sent = Promise.all([caller.track(event()), caller.trackAll([event()])]);
    rejections = await Promise.race([sent, sleep(300, [])]);
    if (rejections.length > 0 && rejections.every(({ status }) => status === 503)) break;
    rejections = [];
  }
  await batches;
  return rejections;
}

test('track-answer and track-answers return 503 while the lanes are full, and queued answers count once', async () => {
  // A busy machine may receive the batches too slowly.
  const rejections = await askUntil('an overload', overload, ({ length }) => length > 0);
  assert.deepEqual(
    rejections.map(({ status, headers, json }) => [status, json.error.message, headers['retry-after']]),
    [1, 2].map(() => [503, 'The answer queue is full; retry later.', '1']),
  );
  for (let n = 0; n < batchCount; n++) assert.equal((await largeBatch(n)).status, 200);
  assert.equal(await countAttempts('ada'), batchCount);
});

/** Sends an event twice while Redis hangs. `inTime`: the key was trusted until both were received. */
async function sendTwice() {
  const one = event({ event_id: 'slow' });
  await waitFor('the service', isServing);
  const sender = callerOf(service, await keys.add());
  const since = performance.now();
  assert.equal((await sender.track(event())).status, 200);
  redis.signal('SIGSTOP');
  try {
    const first = sender.track(one);
    await sleep(200);
    const second = sender.track(one);
    // The server has received both when it responds to a later request.
    await stranger.get('/livez');
    const inTime = performance.now() - since < keyTrustMs - 100;
    return { one, first: await first, second: await second, inTime };
  } finally {
    redis.signal('SIGCONT');
  }
}

test('track-answer returns 409 if the first request with the event_id still runs after 5 s', async () => {
  const { one, first, second } = await askUntil('both in time', sendTwice, ({ inTime }) => inTime);
  assert.deepEqual([second.status, second.json.error.code], [409, 'CONFLICT']);
  assert.equal(first.status, 503);
  await waitFor('the service', async () => (await caller.track(one)).status === 200);
  assert.equal(await countAttempts(one.user_id), 1);
});

test('The service returns 503 while Redis hangs, never 401, and recovers without lost or doubled answers', async () => {
  const before = event({ user_id: 'before', event_id: 'first' });
  assert.equal((await caller.track(before)).status, 200);
  redis.signal('SIGSTOP');
  try {
    await assertUnavailable();
  } finally {
    redis.signal('SIGCONT');
  }
  await waitFor('readiness', async () => (await stranger.get('/readyz')).status === 200);
  await waitFor('the service', isServing);
  assert.equal((await caller.track(before)).headers['idempotent-replayed'], 'true');
  assert.equal(await countAttempts('before'), 1);
});

const reads = ['mastery/before', 'predictions/before', 'velocity/before', 'goals/before', 'skills'];

test('The service returns 503 if Redis comes back empty while ClickHouse has answers', async () => {
  await waitFor('answers in ClickHouse', async () => {
    const [row] = await selectRows<{ n: number }>(clickhouse, 'SELECT toUInt32(count()) AS n FROM attempts');
    return (row?.n ?? 0) > 0;
  });
  // The service trusts this key for 2 s, so that only the reads depend on Redis.
  await caller.get('/api/v1/skills');
  await redis.kill();
  const statuses = new Set<number>();
  const readAll = async (): Promise<void> => {
    for (const { status } of await Promise.all(reads.map((path) => caller.get(`/api/v1/${path}`))))
      statuses.add(status);
  };
  let isStarted = false;
  const reading = (async () => {
    for (; !isStarted; await sleep(2)) await readAll();
  })();
  await redis.start();
  // Longer than keys are trusted and the state of Redis is checked.
  const until = Date.now() + keyTrustMs + 1500;
  while (Date.now() < until) {
    for (const at of [caller, unknown]) statuses.add((await at.track(event({ user_id: 'before' }))).status);
    statuses.add((await caller.get('/api/v1/learners/before/export')).status);
    await sleep(20);
  }
  isStarted = true;
  await reading;
  assert.deepEqual([...statuses], [503]);
  await assertUnavailable();
});
