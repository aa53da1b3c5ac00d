/** More event ids than may be remembered: the window shrinks, health says so, and new ids are refused in time. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { callerOf, event } from '../support/http.js';
import { startSecondApi, startService } from '../support/service.js';
import { waitFor } from '../support/wait.js';

const service = await startService({ after }, { idempotencyMaxIds: 1000 });
const caller = callerOf(service, service.key);

const windowSeconds = async (): Promise<number> =>
  (await caller.get('/api/v1/health')).json.data.idempotency_window_seconds;

const secondNow = (): number => Math.floor(Date.now() / 1000);

test('under 10 minutes new answers with an id get 503; those without one, and repeats, are served', async () => {
  assert.equal(await windowSeconds(), 86_400);
  const batch = () => Array.from({ length: 800 }, (_, i) => event({ event_id: `id-${i}` }));
  assert.equal((await caller.trackAll(batch())).status, 200);
  const newest = batch();
  const second = secondNow();
  await waitFor('the next second', () => secondNow() > second);
  assert.equal((await caller.trackAll(newest)).status, 200);
  await waitFor('a shorter window', async () => (await windowSeconds()) < 600);

  const fresh = await caller.track(event({ event_id: 'fresh' }));
  assert.deepEqual([fresh.status, fresh.json.error.code], [503, 'UNAVAILABLE']);
  assert.match(fresh.headers['retry-after'] ?? '', /^\d+$/);
  assert.equal((await caller.track(event())).status, 200);
  const repeat = await caller.track(newest[799]);
  assert.deepEqual([repeat.status, repeat.headers['idempotent-replayed']], [200, 'true']);

  const some = await caller.trackAll([event({ event_id: 'a' }), event(), {}]);
  assert.equal(some.status, 207);
  const statuses = some.json.data.results.map(({ status }: { status: number }) => status);
  assert.deepEqual(statuses, [503, 200, 400]);

  const none = await caller.trackAll([event({ event_id: 'a' }), {}]);
  assert.deepEqual([none.status, none.json.success, none.json.error.code], [503, false, 'UNAVAILABLE']);
  assert.match(none.headers['retry-after'] ?? '', /^\d+$/);
  const paths: string[] = none.json.error.details.map(({ path }: { path: string }) => path);
  assert.ok(paths.some((path) => path.startsWith('events/0')));
  assert.ok(paths.includes('events/1/user_id'));
});

test('a process that has just started knows the window', async (t) => {
  const second = await startSecondApi(t, service);
  const fresh = await callerOf(second, second.key).track(event({ event_id: 'fresh' }));
  assert.equal(fresh.status, 503);
});
