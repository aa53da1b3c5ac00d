/** Keys, tenants and quotas, over two API services on the same servers. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { callerOf, event } from '../support/http/http.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const second = await service.second();
const keys = await keysOf({ after }, service);

const remainingOf = (headers: Readonly<Record<string, string>>): number =>
  Number(/;r=(\d+);/.exec(headers.ratelimit ?? '')?.[1]);

test('a quota is exact over two services and 50 requests at once', async () => {
  const key = await keys.add({ quota: 20 });
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, i) => callerOf(i % 2 ? service : second, key).track(event())),
  );
  const passed = answers.filter(({ status }) => status === 200);
  assert.equal(passed.length, 20);
  assert.equal(answers.filter(({ status }) => status === 429).length, 30);
  const remaining = passed.map(({ headers }) => remainingOf(headers)).sort((a, b) => a - b);
  assert.deepEqual(
    remaining,
    Array.from({ length: 20 }, (_, i) => i),
  );
});

test('what counts against the quota', async () => {
  const key = await keys.add({ quota: 7 });
  const caller = callerOf(service, key);
  const left = async (call: Promise<{ headers: Readonly<Record<string, string>> }>) =>
    remainingOf((await call).headers);
  assert.equal(await left(caller.track(event())), 6);
  assert.equal(await left(caller.track('not JSON')), 5, '400 counts');
  assert.equal(await left(caller.get('/api/v1/mastery/nobody')), 4, '404 of a learner counts');
  assert.equal(await left(caller.raw({ body: '{}', headers: { 'Content-Type': 'a/b' } })), 3, '415 counts');
  assert.equal(await left(caller.trackAll([event(), event(), event()])), 2, 'a batch is one request');
  for (const path of ['/api/v1/nothing', '/api/v1/track-answer', '/api/v1/health', '/livez', '/nothing']) {
    const { headers } = await caller.raw({ method: 'GET', path });
    assert.equal(headers.ratelimit, undefined, `${path} is not counted`);
  }
  assert.equal(await left(caller.raw({ body: Buffer.alloc(17_000, 32) })), 1, '413 counts');
  assert.equal(await left(caller.track(event())), 0);
  assert.equal((await caller.track(event())).status, 429);
  assert.equal((await caller.get('/api/v1/health')).status, 200);
});

test('a key without limit has no RateLimit headers', async () => {
  const { headers } = await callerOf(service, await keys.add()).track(event());
  assert.equal(headers.ratelimit, undefined);
  assert.equal(headers['ratelimit-policy'], undefined);
});

test('quotas above 10,000 are taken in leases: never exceeded, and every request passes below them', async () => {
  const quota = 11_000;
  const key = await keys.add({ quota });
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      callerOf(i % 2 ? service : second, key).get('/api/v1/mastery/nobody'),
    ),
  );
  for (const { status, headers } of answers) {
    assert.equal(status, 404);
    assert.equal(headers['ratelimit-policy'], `"default";q=${quota};w=60`);
    assert.ok(remainingOf(headers) < quota && remainingOf(headers) >= quota - 200);
  }
});

test('a revoked key is refused everywhere', async () => {
  const key = await keys.add();
  const statusAt = async (at: { port: number }) =>
    (await callerOf(at, key).get('/api/v1/mastery/nobody')).status;
  assert.deepEqual(await Promise.all([statusAt(service), statusAt(second)]), [404, 404]);
  assert.equal(await keys.revoke(key), true);
  await waitFor('refusal', async () => {
    const statuses = await Promise.all([statusAt(service), statusAt(second)]);
    return statuses.every((status) => status === 401);
  });
});

test('two tenants use the same user_id and event_id and never see each other', async () => {
  const [red, blue] = await Promise.all([keys.add({ tenant: 'red' }), keys.add({ tenant: 'blue' })]);
  const answer = { user_id: 'shared', skill_id: 'algebra', is_correct: true, event_id: 'e' };
  const inRed = await callerOf(service, red).track(answer);
  assert.equal(inRed.json.data.total_attempts, 1);
  for (const path of ['/api/v1/mastery/shared', '/api/v1/predictions/shared']) {
    const { status, json } = await callerOf(service, blue).get(path);
    assert.deepEqual([status, json.error.code], [404, 'USER_NOT_FOUND']);
  }
  const inBlue = await callerOf(second, blue).track({ ...answer, is_correct: false });
  assert.equal(inBlue.headers['idempotent-replayed'], undefined);
  assert.deepEqual([inBlue.status, inBlue.json.data.total_attempts], [200, 1]);
  const { json } = await callerOf(second, red).get('/api/v1/mastery/shared');
  assert.equal(json.data.skills[0].correct_attempts, 1);
});
