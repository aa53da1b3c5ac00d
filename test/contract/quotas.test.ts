/** Request quotas of keys, over two API services on the same servers. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { indices } from '../../src/lists.js';
import { callerOf, event } from '../support/http/http.js';
import { keysOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const second = await service.second();
const keys = await keysOf({ after }, service);

type Headers = Readonly<Record<string, string>>;
const remaining = (headers: Headers): number => Number(/;r=(\d+);/.exec(headers.ratelimit ?? '')?.[1]);

test('A quota is exact over two services and 50 concurrent requests', async () => {
  const key = await keys.add({ quota: 20 });
  const answers = await Promise.all(
    indices(50).map((i) => callerOf(i % 2 ? service : second, key).track(event())),
  );
  const accepted = answers.filter(({ status }) => status === 200);
  assert.equal(answers.filter(({ status }) => status === 429).length, 30);
  const left = accepted.map(({ headers }) => remaining(headers)).sort((a, b) => a - b);
  assert.deepEqual(left, indices(20));
});

test('A quota counts every request except 401, 429, unknown paths, wrong methods and health', async () => {
  const caller = callerOf(service, await keys.add({ quota: 7 }));
  const left = async (call: Promise<{ headers: Headers }>) => remaining((await call).headers);
  assert.equal(await left(caller.track(event())), 6);
  assert.equal(await left(caller.track('not JSON')), 5, '400');
  assert.equal(await left(caller.get('/api/v1/mastery/unknown')), 4, '404 of a learner');
  assert.equal(await left(caller.raw({ body: '{}', headers: { 'Content-Type': 'a/b' } })), 3, '415');
  assert.equal(await left(caller.trackAll([event(), event(), event()])), 2, 'a batch');
  for (const path of ['/api/v1/nothing', '/api/v1/track-answer', '/api/v1/health', '/livez', '/nothing']) {
    const { headers } = await caller.raw({ method: 'GET', path });
    assert.equal(headers.ratelimit, undefined, `${path} is counted`);
  }
  assert.equal(await left(caller.raw({ body: Buffer.alloc(17_000, 32) })), 1, '413');
  assert.equal(await left(caller.track(event())), 0);
  assert.equal((await caller.track(event())).status, 429);
  assert.equal((await caller.get('/api/v1/health')).status, 200);
});

test('A key without a quota gets no RateLimit headers', async () => {
  const { headers } = await callerOf(service, await keys.add()).track(event());
  assert.deepEqual([headers.ratelimit, headers['ratelimit-policy']], [undefined, undefined]);
});

test('A quota above 10,000 accepts requests in both processes and reports the remainder to within 200', async () => {
  const quota = 11_000;
  const key = await keys.add({ quota });
  const answers = await Promise.all(
    indices(60).map((i) => callerOf(i % 2 ? service : second, key).get('/api/v1/mastery/unknown')),
  );
  for (const { status, headers } of answers) {
    assert.deepEqual([status, headers['ratelimit-policy']], [404, `"default";q=${quota};w=60`]);
    assert.ok(remaining(headers) < quota && remaining(headers) >= quota - 200);
  }
});
