/** Event ids of learners: how many may be taken, what is served when no more are, and that they are the learner's own. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { callerOf, event, type JsonAnswer } from '../support/http/http.js';
import { startSecondApi, startService } from '../support/servers/service.js';

const service = await startService({ after });
const caller = callerOf(service, service.key);

const [most, perBatch] = [20_000, 1000];
const busy = 'busy';
const of = (userId: string, change: Record<string, unknown> = {}) => event({ user_id: userId, ...change });
const batchFrom = (from: number) =>
  Array.from({ length: perBatch }, (_, i) => of(busy, { event_id: `id-${from + i}` }));

interface Result {
  readonly status: number;
  readonly replayed?: true;
  readonly data: { readonly total_attempts: number };
}
const resultsOf = ({ json }: JsonAnswer): Result[] => json.data.results;
const isReplayed = ({ headers }: JsonAnswer): boolean => headers['idempotent-replayed'] === 'true';

function assertRefused({ status, headers, json }: JsonAnswer): void {
  assert.deepEqual([status, json.success, json.error.code], [503, false, 'UNAVAILABLE']);
  assert.match(headers['retry-after'] ?? '', /^\d+$/);
}

test('health tells how long ids are remembered', async () => {
  const { json } = await caller.get('/api/v1/health');
  const { idempotency_window_seconds, idempotency_min_window_seconds } = json.data;
  assert.deepEqual([idempotency_window_seconds, idempotency_min_window_seconds], [86_400, 600]);
});

test('an id that repeats inside a batch counts once', async () => {
  const same = of('twice', { event_id: 'a' });
  const other = of('twice', { event_id: 'b' });
  const answer = await caller.trackAll([same, other, same, { ...same, is_correct: false }]);
  assert.equal(answer.status, 207);
  const results = resultsOf(answer);
  assert.deepEqual(
    results.map(({ status, replayed }) => [status, replayed ?? false]),
    [
      [200, false],
      [200, false],
      [200, true],
      [422, false],
    ],
  );
  assert.deepEqual(results[2]?.data, results[0]?.data);
  assert.equal((await caller.track(of('twice'))).json.data.total_attempts, 3);
});

test('an id is its learner’s own', async () => {
  const first = await caller.track(of('one', { event_id: 'shared', is_correct: true }));
  const second = await caller.track(of('two', { event_id: 'shared', is_correct: false }));
  assert.deepEqual(
    [first, second].map((answer) => [answer.status, isReplayed(answer), answer.json.data.total_attempts]),
    [
      [200, false, 1],
      [200, false, 1],
    ],
  );
  const again = await caller.track(of('two', { event_id: 'shared', is_correct: false }));
  assert.ok(isReplayed(again));
  assert.deepEqual(again.json.data, second.json.data);
  const both = await caller.trackAll(['three', 'four'].map((userId) => of(userId, { event_id: 'shared' })));
  assert.deepEqual(
    resultsOf(both).map(({ status, replayed }) => [status, replayed]),
    [
      [200, undefined],
      [200, undefined],
    ],
  );
});

test('20,000 ids of a learner within 10 minutes are taken, and no more; all else is served', async (t) => {
  for (let from = 0; from < most - perBatch; from += perBatch)
    assert.equal((await caller.trackAll(batchFrom(from))).status, 200);
  const last = batchFrom(most - perBatch);
  assert.equal((await caller.trackAll(last.slice(1))).status, 200);
  const some = await caller.trackAll([...last.slice(0, 1), of(busy, { event_id: 'fresh' })]);
  assert.deepEqual(
    resultsOf(some).map(({ status }) => status),
    [200, 503],
    'room for one',
  );

  assertRefused(await caller.track(of(busy, { event_id: 'fresh' })));
  assert.equal((await caller.track(of(busy))).json.data.total_attempts, most + 1, 'without an id it counts');
  for (const id of [0, 1, 12_345, most - perBatch, most - 1]) {
    const repeat = await caller.track(of(busy, { event_id: `id-${id}` }));
    assert.deepEqual([repeat.status, isReplayed(repeat)], [200, true], `id-${id}`);
  }
  const reused = await caller.track(of(busy, { event_id: 'id-7', is_correct: false }));
  assert.equal(reused.json.error.code, 'IDEMPOTENCY_KEY_REUSED');
  const others = await caller.track(of('another', { event_id: 'fresh' }));
  assert.deepEqual([others.status, isReplayed(others)], [200, false]);

  const mixed = await caller.trackAll([
    of(busy, { event_id: 'a' }),
    of(busy),
    of(busy, { event_id: 'id-3' }),
    of('another', { event_id: 'a' }),
    {},
  ]);
  assert.equal(mixed.status, 207);
  assert.deepEqual(
    resultsOf(mixed).map(({ status, replayed }) => [status, replayed ?? false]),
    [
      [503, false],
      [200, false],
      [200, true],
      [200, false],
      [400, false],
    ],
  );

  const none = await caller.trackAll([of(busy, { event_id: 'a' }), {}]);
  assertRefused(none);
  const paths: string[] = none.json.error.details.map(({ path }: { path: string }) => path);
  assert.ok(paths.some((path) => path.startsWith('events/0')));
  assert.ok(paths.includes('events/1/user_id'));

  const other = await startSecondApi(t, service);
  assertRefused(await callerOf(other, other.key).track(of(busy, { event_id: 'fresh' })));
});
