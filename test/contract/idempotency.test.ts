/** An event_id names one answer of one learner, over two API services on the same servers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callerOf, event } from '../support/http/http.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();
const second = await service.second();
const caller = callerOf(service, service.key);
const other = callerOf(second, second.key);

const attemptsOf = async (user_id: unknown): Promise<number> => {
  const { json } = await caller.get(`/api/v1/mastery/${user_id}`);
  return json.data.skills.reduce(
    (sum: number, skill: { total_attempts: number }) => sum + skill.total_attempts,
    0,
  );
};

test('the same id again gives the first answer again, at either service', async () => {
  const one = event({ event_id: 'e' });
  const first = await caller.track(one);
  assert.equal(first.headers['idempotent-replayed'], undefined);
  await caller.track({ ...one, event_id: 'another' });
  for (const at of [caller, other]) {
    const again = await at.track(one);
    assert.equal(again.status, 200);
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assert.deepEqual(again.json, first.json);
  }
  assert.equal(await attemptsOf(one.user_id), 2);
});

for (const services of [1, 2]) {
  test(`the same id from 20 clients at once over ${services} services: counted once, all the same answer`, async () => {
    for (let round = 0; round < 5; round++) {
      const one = event({ event_id: 'at-once' });
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % services === 0 ? caller : other).track(one)),
      );
      for (const { status, json } of answers) {
        assert.equal(status, 200);
        assert.deepEqual(json, answers[0]?.json);
      }
      const fresh = answers.filter(({ headers }) => headers['idempotent-replayed'] === undefined);
      assert.equal(fresh.length, 1);
      assert.equal(await attemptsOf(one.user_id), 1);
    }
  });
}

test('what makes a different event: 422, and the first one stays', async () => {
  const one = event({
    event_id: 'different',
    time_spent_seconds: 10,
    confidence_score: 3,
    question_difficulty: 0.5,
    item_id: 'i',
    occurred_at: '2020-01-01T00:00:00Z',
  });
  await caller.track(one);
  const changes = {
    skill_id: 'geometry',
    is_correct: false,
    time_spent_seconds: 11,
    confidence_score: null,
    question_difficulty: -0.5,
    item_id: 'j',
    occurred_at: '2020-01-01T01:00:00+01:00',
  };
  for (const [name, value] of Object.entries(changes)) {
    const { status, json } = await caller.track({ ...one, [name]: value });
    assert.deepEqual([status, json.error.code], [422, 'IDEMPOTENCY_KEY_REUSED'], name);
  }
  const same = await caller.track({ ...one, unknown_field: 1 });
  assert.equal(same.headers['idempotent-replayed'], 'true', 'unknown fields are not compared');
  assert.equal(await attemptsOf(one.user_id), 1);
});

test('null and absence are the same event, and so are 1.0 and 1', async () => {
  const one = event({ event_id: 'null' });
  await caller.track({ ...one, item_id: null });
  assert.equal((await caller.track(one)).headers['idempotent-replayed'], 'true');
  const user_id = one.user_id;
  const text = (seconds: string) =>
    `{"user_id":"${user_id}","skill_id":"s","is_correct":true,"event_id":"n","time_spent_seconds":${seconds}}`;
  await caller.track(text('1'));
  assert.equal((await caller.track(text('1.0'))).headers['idempotent-replayed'], 'true');
});

test('ids are unique within a learner: another learner may use the same', async () => {
  assert.equal((await caller.track(event({ event_id: 'shared' }))).headers['idempotent-replayed'], undefined);
  assert.equal((await caller.track(event({ event_id: 'shared' }))).headers['idempotent-replayed'], undefined);
});

const headers: readonly (readonly [sent: string, id: string])[] = [
  ['bare-key', 'bare-key'],
  ['bare key with blanks', 'bare key with blanks'],
  ['"quoted key"', 'quoted key'],
  ['"a \\"b\\" \\\\c"', 'a "b" \\c'],
  ['x'.repeat(128), 'x'.repeat(128)],
  [`"${'x'.repeat(128)}"`, 'x'.repeat(128)],
];

for (const [sent, id] of headers) {
  test(`Idempotency-Key ${sent.slice(0, 25)} stands for event_id`, async () => {
    const one = event();
    const first = await caller.track(one, { 'Idempotency-Key': sent });
    assert.equal(first.status, 200);
    assert.equal((await caller.track({ ...one, event_id: id })).headers['idempotent-replayed'], 'true');
    assert.equal(await attemptsOf(one.user_id), 1);
  });
}

test('a bad Idempotency-Key: 400', async () => {
  for (const sent of ['', '""', '"open', '"a"b"', '"a\\x"', 'x'.repeat(129), `"${'x'.repeat(129)}"`]) {
    const { status, json } = await caller.track(event(), { 'Idempotency-Key': sent });
    assert.deepEqual([status, json.error.code], [400, 'INVALID_REQUEST'], sent);
  }
});

test('an event_id in the body wins over the header; null counts as absence', async () => {
  const one = event({ event_id: 'body' });
  await caller.track(one, { 'Idempotency-Key': 'header' });
  assert.equal((await caller.track(one)).headers['idempotent-replayed'], 'true');
  const fresh = await caller.track({ ...one, event_id: null }, { 'Idempotency-Key': 'header' });
  assert.equal(fresh.headers['idempotent-replayed'], undefined);
  const again = await caller.track({ ...one, event_id: 'header' });
  assert.equal(again.headers['idempotent-replayed'], 'true');
});
