/** Redis stopped, killed or emptied under a running service: 503 and never 401, and nobody becomes new in silence. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { callerOf, event } from '../support/http/http.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { clickhouseOf, keysOf, startBareRedis, startService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const redis = await startBareRedis({ after });
const service = await startService({ after }, { redisUrl: redis.url });
const keys = await keysOf({ after }, service);
const clickhouse = clickhouseOf({ after }, service);
const caller = callerOf(service, service.key);
const stranger = callerOf(service, null);

exitAfterTests();

const readyStatus = async (): Promise<number> => (await stranger.get('/readyz')).status;

async function assertAway(): Promise<void> {
  const answers = await Promise.all([
    caller.track(event({ event_id: 'away' })),
    caller.trackAll([event(), event()]),
    caller.get('/api/v1/mastery/before'),
    caller.get('/api/v1/predictions/before'),
    callerOf(service, 'unknown-key').track(event()),
  ]);
  for (const { status, headers, json } of answers) {
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

/** Below the 2 s for which a key that was looked up is trusted: afterwards Redis is asked for it again. */
const trustedMs = 1900;

/** Sends an event twice while Redis hangs, and tells whether both were read while the key was trusted. */
async function sendTwice() {
  const one = event({ event_id: 'slow' });
  await waitFor('answers', async () => (await caller.track(event())).status === 200);
  const sender = callerOf(service, await keys.add());
  const since = performance.now();
  assert.equal((await sender.track(event())).status, 200);
  redis.signal('SIGSTOP');
  try {
    const first = sender.track(one);
    await sleep(200);
    const second = sender.track(one);
    // Connections are served in order: once this is answered, both have been read.
    await stranger.get('/livez');
    const inTime = performance.now() - since < trustedMs;
    return { one, first: await first, second: await second, inTime };
  } finally {
    redis.signal('SIGCONT');
  }
}

test('409 when the first request with the event_id still runs after 5 s', async () => {
  const { one, first, second } = await askUntil('both in time', sendTwice, ({ inTime }) => inTime);
  assert.deepEqual([second.status, second.json.error.code], [409, 'CONFLICT']);
  assert.equal(first.status, 503);
  await waitFor('answers', async () => (await caller.track(one)).status === 200);
  const { json } = await caller.get(`/api/v1/mastery/${one.user_id}`);
  assert.equal(json.data.skills[0].total_attempts, 1, 'counted once, whatever became of the first tries');
});

test('a Redis that hangs: 503, then everything works again', async () => {
  const before = event({ user_id: 'before', event_id: 'first' });
  assert.equal((await caller.track(before)).status, 200);
  redis.signal('SIGSTOP');
  try {
    await assertAway();
  } finally {
    redis.signal('SIGCONT');
  }
  await waitFor('recovery', async () => (await readyStatus()) === 200);
  await waitFor('answers', async () => (await caller.track(event())).status === 200);
  assert.equal((await caller.track(before)).headers['idempotent-replayed'], 'true');
  const { json } = await caller.get('/api/v1/mastery/before');
  assert.equal(json.data.skills[0].total_attempts, 1);
});

test('a Redis that came back empty while ClickHouse has attempts: 503, never new learners', async () => {
  await waitFor('attempts in ClickHouse', async () => {
    const [row] = await selectRows<{ n: number }>(clickhouse, 'SELECT toUInt32(count()) AS n FROM attempts');
    return (row?.n ?? 0) > 0;
  });
  await redis.kill();
  await assertAway();
  await redis.start();
  const until = Date.now() + 4000;
  while (Date.now() < until) {
    for (const at of [caller, callerOf(service, 'unknown-key')]) {
      const { status, json } = await at.track(event({ user_id: 'before' }));
      assert.deepEqual([status, json.error.code], [503, 'UNAVAILABLE']);
    }
    for (const path of ['/api/v1/mastery/before', '/api/v1/learners/before/export'])
      assert.equal((await caller.get(path)).status, 503, path);
    await sleep(50);
  }
  assert.equal(await readyStatus(), 503);
  await assertAway();
});
