/** An event_id names one answer of one learner, also over two API processes. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { computeSum } from '../../src/lists.js';
import { maxWindowIds, openLedger } from '../../src/store/learners/event-ids.js';
import { eventIdsKey, partitionOf } from '../../src/store/redis/keys.js';
import { callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { redisOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const service = await sharedService();
const second = await service.second();
const caller = callerOf(service, service.key);
const other = callerOf(second, second.key);

interface Result {
  readonly status: number;
  readonly replayed?: true;
}
const isReplayed = ({ headers }: JsonAnswer): boolean => headers['idempotent-replayed'] === 'true';
const resultsOf = ({ json }: JsonAnswer) =>
  json.data.results.map(({ status, replayed }: Result) => `${status}${replayed ? ' replayed' : ''}`);

const countAttempts = async (user_id: unknown): Promise<number> => {
  const { json } = await caller.get(`/api/v1/mastery/${user_id}`);
  return computeSum(valuesOf(json.data.skills, 'total_attempts'));
};

test('track-answer returns the first response to a repeated event_id, on every API process', async () => {
  const one = event({ event_id: 'e' });
  const first = await caller.track(one);
  assert.equal(isReplayed(first), false);
  await caller.track({ ...one, event_id: 'another' });
  for (const at of [caller, other]) {
    const again = await at.track(one);
    assert.deepEqual([again.status, isReplayed(again)], [200, true]);
    assert.deepEqual(again.json, first.json);
  }
  assert.equal(await countAttempts(one.user_id), 2);
});

test('track-answer counts an event once that 20 clients send concurrently to one or two processes', async () => {
  for (const callers of [[caller], [caller, other], [caller, other]]) {
    const one = event({ event_id: 'concurrent' });
    const sent = Array.from({ length: 20 }, (_, i) => callers[i % callers.length]?.track(one));
    const responses = (await Promise.all(sent)) as JsonAnswer[];
    for (const { status, json } of responses) {
      assert.equal(status, 200);
      assert.deepEqual(json, responses[0]?.json);
    }
    assert.equal(responses.filter((response) => !isReplayed(response)).length, 1);
    assert.equal(await countAttempts(one.user_id), 1);
  }
});

test('track-answer returns 422 for a used event_id with any other field, and keeps the first answer', async () => {
  const one = event({
    ...{ event_id: 'different', time_spent_seconds: 10, confidence_score: 3, question_difficulty: 0.5 },
    ...{ item_id: 'i', occurred_at: '2020-01-01T00:00:00Z' },
  });
  await caller.track(one);
  const changes = {
    ...{ skill_id: 'geometry', is_correct: false, time_spent_seconds: 11, confidence_score: null },
    ...{ question_difficulty: -0.5, item_id: 'j', occurred_at: '2020-01-01T00:00:00.001Z' },
  };
  for (const [name, value] of Object.entries(changes)) {
    const changed = await caller.track({ ...one, [name]: value });
    assert.equal(outcomeOf(changed), '422 IDEMPOTENCY_KEY_REUSED', name);
  }
  assert.ok(isReplayed(await caller.track({ ...one, unknown_field: 1 })), 'unknown fields are not compared');
  assert.equal(await countAttempts(one.user_id), 1);
});

test('track-answer treats null like a missing field and 1.0 like 1 when it compares events', async () => {
  const one = event({ event_id: 'null' });
  await caller.track({ ...one, item_id: null });
  assert.ok(isReplayed(await caller.track(one)));
  const withSeconds = (seconds: string) =>
    JSON.stringify({ ...one, event_id: 'n', time_spent_seconds: '?' }).replace('"?"', seconds);
  await caller.track(withSeconds('1'));
  assert.ok(isReplayed(await caller.track(withSeconds('1.0'))));
});

test('track-answer compares occurred_at as an instant in milliseconds', async () => {
  const one = event({ event_id: 'instant', occurred_at: '2016-12-31T23:59:59Z' });
  const first = await caller.track(one);
  const spellings = ['59.000Z', '59.0Z', '59.0009999Z', '59+00:00', '59-00:00', '60Z', '60.000Z'];
  const others = [
    '2017-01-01T00:59:59+01:00',
    '2016-12-31t21:29:59.000-02:30',
    '2016-12-31t23:59:59z',
    '2016-12-31t23:59:59Z',
  ];
  for (const occurred_at of [...spellings.map((end) => `2016-12-31T23:59:${end}`), ...others]) {
    const again = await caller.track({ ...one, occurred_at });
    assert.deepEqual([isReplayed(again), again.json], [true, first.json], occurred_at);
  }
  for (const occurred_at of ['2016-12-31T23:59:59.001Z', '2016-12-31T23:59:59+01:00', null])
    assert.equal(outcomeOf(await caller.track({ ...one, occurred_at })), '422 IDEMPOTENCY_KEY_REUSED');
});

test('An event_id belongs to one learner, so that others can use the same', async () => {
  const [one, two] = ['one', 'two'].map((user_id) => event({ user_id, event_id: 'shared' }));
  const first = await caller.track(one);
  const responses = [first, await caller.track({ ...two, is_correct: false }), await caller.track(one)];
  assert.deepEqual(responses.map(isReplayed), [false, false, true]);
  const both = ['three', 'four'].map((user_id) => event({ user_id, event_id: 'shared' }));
  assert.deepEqual(resultsOf(await caller.trackAll(both)), ['200', '200']);
});

test('track-answer uses Idempotency-Key, bare or quoted, if the event has no event_id', async () => {
  const keys = {
    'bare key with blanks': 'bare key with blanks',
    '"a \\"b\\" \\\\c"': 'a "b" \\c',
    ['x'.repeat(128)]: 'x'.repeat(128),
    [`"${'x'.repeat(128)}"`]: 'x'.repeat(128),
  };
  for (const [sent, event_id] of Object.entries(keys)) {
    const one = event();
    assert.equal((await caller.track(one, { 'Idempotency-Key': sent })).status, 200);
    assert.ok(isReplayed(await caller.track({ ...one, event_id })), sent);
    assert.equal(await countAttempts(one.user_id), 1);
  }
  const own = event({ event_id: 'body' });
  await caller.track(own, { 'Idempotency-Key': 'header' });
  assert.ok(isReplayed(await caller.track(own)), 'event_id takes precedence');
  const absent = await caller.track({ ...own, event_id: null }, { 'Idempotency-Key': 'header' });
  assert.equal(isReplayed(absent), false);
  assert.ok(isReplayed(await caller.track({ ...own, event_id: 'header' })));
});

test('track-answer returns 400 for a malformed Idempotency-Key', async () => {
  for (const sent of [
    '',
    '""',
    '"open',
    '"a"b"',
    '"a\\x"',
    'x'.repeat(129),
    `"${'x'.repeat(129)}"`,
    '.',
    '".."',
  ])
    assert.equal(
      outcomeOf(await caller.track(event(), { 'Idempotency-Key': sent })),
      '400 INVALID_REQUEST',
      sent,
    );
});

function assertUnavailable({ status, headers, json }: JsonAnswer): void {
  assert.deepEqual([status, json.success, json.error.code], [503, false, 'UNAVAILABLE']);
  assert.match(headers['retry-after'] ?? '', /^\d+$/);
}

/** Writes the learner's id ledger as after this many ids in the last second. */
async function fillLedger(user_id: string, count: number): Promise<void> {
  const redis = await redisOf({ after }, service.redisUrl);
  const ledger = openLedger(null);
  const now = Math.floor(Date.now() / 1000);
  for (let i = 0; i < count; i++) ledger.add(now);
  const key = eventIdsKey(partitionOf(service.tenant, user_id, 16), service.tenant, user_id);
  assert.equal(await redis.hset(key, 'n', ledger.encode()), 0, 'the learner has no id ledger yet');
}

test('track-answer returns 503 for new event ids of a learner with 20,000 ids, and serves all others', async () => {
  const of = (change: object) => event({ user_id: 'busy', ...change });
  const used = of({ event_id: 'used' });
  assert.equal((await caller.track(used)).status, 200);
  await fillLedger('busy', maxWindowIds - 1);
  const lastAndNext = await caller.trackAll([of({ event_id: 'last' }), of({ event_id: 'new' })]);
  assert.deepEqual(resultsOf(lastAndNext), ['200', '503']);
  assertUnavailable(await caller.track(of({ event_id: 'new' })));
  assertUnavailable(await other.track(of({ event_id: 'new' })));
  assert.equal(
    (await caller.track(of({}))).json.data.total_attempts,
    3,
    'an answer without an id is counted',
  );
  assert.ok(isReplayed(await caller.track(used)));
  assert.equal(outcomeOf(await caller.track({ ...used, is_correct: false })), '422 IDEMPOTENCY_KEY_REUSED');

  const mixed = [of({ event_id: 'a' }), of({}), used, event({ user_id: 'idle', event_id: 'a' }), {}];
  const some = await caller.trackAll(mixed);
  assert.equal(some.status, 207);
  assert.deepEqual(resultsOf(some), ['503', '200', '200 replayed', '200', '400']);
  const none = await caller.trackAll([of({ event_id: 'a' }), {}]);
  assertUnavailable(none);
  const paths: string[] = none.json.error.details.map(({ path }: { path: string }) => path);
  assert.ok(paths.some((path) => path.startsWith('events/0')) && paths.includes('events/1/user_id'));
});
