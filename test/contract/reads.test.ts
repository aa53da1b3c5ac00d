/** Predictions, mastery, health and the probes. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { awayFromMidnight } from '../support/builders/day.js';
import { whenWell } from '../support/client/well.js';
import { callerOf, event } from '../support/http/http.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const stranger = callerOf(service, null);

beforeEach(awayFromMidnight);

const events = Array.from({ length: 60 }, (_, i) =>
  event({ user_id: 'ada', skill_id: `skill-${i % 7}`, is_correct: i % 3 > 0, time_spent_seconds: 30 }),
);
assert.equal((await caller.trackAll(events)).status, 200);
assert.equal((await caller.track(event({ user_id: 'one' }))).status, 200);

const predicted = (days: number) =>
  ['math', 'rw', 'total'].map((part) => `predicted_${part}_in_${days}_days`);

for (const user of ['ada', 'one']) {
  for (const query of [
    '',
    '?days=1',
    '?days=30',
    '?days=365',
    '?days=90&confidence_level=0.99',
    '?confidence_level=0.5',
  ]) {
    test(`predictions of ${user}${query}: the rules hold`, async () => {
      const { status, json } = await caller.get(`/api/v1/predictions/${user}${query}`);
      assert.equal(status, 200);
      const { data } = json;
      const days = Number(/days=(\d+)/.exec(query)?.[1] ?? 30);
      const names = [...new Set([...predicted(30), ...predicted(days)])];
      assert.deepEqual(
        Object.keys(data)
          .filter((name) => name.startsWith('predicted_'))
          .sort(),
        [...names].sort(),
      );
      assert.equal(data.current_total, data.current_math + data.current_rw);
      for (const horizon of [30, days]) {
        const [math, rw, total] = predicted(horizon).map((name) => data[name]);
        assert.equal(total, math + rw);
      }
      for (const section of ['math', 'rw']) {
        const { low, high } = data.confidence_intervals[section];
        const score = data[`predicted_${section}_in_${days}_days`];
        for (const figure of [low, score, high, data[`current_${section}`]]) {
          assert.ok(figure >= 200 && figure <= 800 && figure % 10 === 0, `${section} ${figure}`);
        }
        assert.ok(low <= score && score <= high);
      }
      const { low, high } = data.confidence_intervals.total;
      const total = data[`predicted_total_in_${days}_days`];
      assert.ok(low <= total && total <= high && low >= 400 && high <= 1600);
      assert.equal(data.forecast_days, days);
      assert.equal(data.confidence_level, Number(/level=([\d.]+)/.exec(query)?.[1] ?? 0.8));
      assert.ok(Array.isArray(data.recommendations));
      assert.deepEqual(Object.keys(data.data_points).sort(), Object.keys(data.reliability).sort());
    });
  }
}

test('goal_tracking does not depend on days, but for goal_probability', async () => {
  const goalOf = async (query: string) => {
    const { goal_probability, ...rest } = (await caller.get(`/api/v1/predictions/ada${query}`)).json.data
      .goal_tracking;
    assert.ok(goal_probability >= 0 && goal_probability <= 1);
    return rest;
  };
  const goal = await goalOf('');
  assert.deepEqual(Object.keys(goal).sort(), [
    'days_to_goal',
    'is_set',
    'on_track',
    'progress_percent',
    'target_date',
    'target_score',
  ]);
  assert.ok(goal.days_to_goal === null || (Number.isInteger(goal.days_to_goal) && goal.days_to_goal <= 365));
  assert.equal(typeof goal.on_track, 'boolean');
  assert.ok(Number.isInteger(goal.target_score));
  assert.equal(goal.progress_percent, Math.round(goal.progress_percent * 10) / 10);
  assert.deepEqual(await goalOf('?days=365'), goal);
});

const queries: readonly (readonly [string, number])[] = [
  ['', 200],
  ['?', 200],
  ['?other=&other=&other', 200],
  ['?day=0', 200],
  ['?%64ays=7', 200],
  ['?days=007', 200],
  ['?days=30&confidence_level=0.80', 200],
  ['?days=0', 400],
  ['?days=366', 400],
  ['?days=-1', 400],
  ['?days=%2B7', 400],
  ['?days=30.5', 400],
  ['?days=1e2', 400],
  ['?days=0x10', 400],
  ['?days=abc', 400],
  ['?days=NaN', 400],
  ['?days=null', 400],
  ['?days=', 400],
  ['?days', 400],
  ['?days=7&days=7', 400],
  ['?days=7&%64ays=8', 400],
  ['?days=7,8', 400],
  ['?days=%207', 400],
  ['?days=%zz', 400],
  ['?days=%FF', 400],
  ['?days=99999999999999999999', 400],
  ['?confidence_level=0.49', 400],
  ['?confidence_level=0.995', 400],
  ['?confidence_level=', 400],
  ['?confidence_level=0,8', 400],
  ['?confidence_level=.8&confidence_level=.8', 400],
];

test('query values', async () => {
  for (const [query, status] of queries) {
    const answer = await caller.get(`/api/v1/predictions/ada${query}`);
    assert.equal(answer.status, status, query);
    if (status === 400) assert.equal(answer.json.error.code, 'INVALID_REQUEST');
  }
});

const paths: readonly (readonly [string, number, string])[] = [
  ['nobody', 404, 'USER_NOT_FOUND'],
  ['%2F', 404, 'USER_NOT_FOUND'],
  ['a%2Fb%3Fc%23d', 404, 'USER_NOT_FOUND'],
  ['a%25', 404, 'USER_NOT_FOUND'],
  ['..', 404, 'USER_NOT_FOUND'],
  ['x'.repeat(128), 404, 'USER_NOT_FOUND'],
  [encodeURIComponent('😀'.repeat(128)), 404, 'USER_NOT_FOUND'],
  ['', 404, 'NOT_FOUND'],
  ['a/b/c', 404, 'NOT_FOUND'],
  ['a/', 404, 'NOT_FOUND'],
  ['x'.repeat(129), 400, 'INVALID_REQUEST'],
  ['%', 400, 'INVALID_REQUEST'],
  ['%2', 400, 'INVALID_REQUEST'],
  ['%zz', 400, 'INVALID_REQUEST'],
  ['%00', 400, 'INVALID_REQUEST'],
  ['%0A', 400, 'INVALID_REQUEST'],
  ['%C2%85', 400, 'INVALID_REQUEST'],
  ['%FF', 400, 'INVALID_REQUEST'],
  ['%C0%AF', 400, 'INVALID_REQUEST'],
  ['%ED%A0%80', 400, 'INVALID_REQUEST'],
];

for (const call of ['mastery', 'predictions']) {
  test(`ids in the path of ${call}`, async () => {
    for (const [id, status, code] of paths) {
      const answer = await caller.get(`/api/v1/${call}/${id}`);
      assert.deepEqual([answer.status, answer.json.error.code], [status, code], id);
    }
  });
}

test('percent-encoded ids find their learner, byte for byte', async () => {
  for (const user_id of [
    'a/b',
    'a%b',
    'a b+c',
    'ä?&#',
    '..',
    '😀',
    '100%2F',
    'café',
    'cafe\u0301',
    "'; --",
    '__proto__',
  ]) {
    await caller.track(event({ user_id, skill_id: '__proto__' }));
    const path = `/api/v1/mastery/${user_id === '..' ? '%2E%2E' : encodeURIComponent(user_id)}`;
    const { json } = await caller.get(path);
    assert.equal(json.data.user_id, user_id);
    assert.equal(json.data.skills[0].skill_id, '__proto__');
    assert.equal(json.data.skills[0].total_attempts, 1);
  }
});

test('mastery: every skill by skill_id, as the last answers told', async () => {
  const user_id = 'mastery';
  const occurred_at = '2026-01-15T10:00:00.250Z';
  for (const skill_id of ['b', 'a', 'B', '\uffee', '😀', '10', '9']) {
    await caller.track(event({ user_id, skill_id, occurred_at, is_correct: false }));
  }
  const last = await caller.track(event({ user_id, skill_id: 'a', occurred_at }));
  const { json } = await caller.get(`/api/v1/mastery/${user_id}`);
  assert.equal(json.data.user_id, user_id);
  const order = json.data.skills.map(({ skill_id }: { skill_id: string }) => skill_id);
  assert.deepEqual(order, ['10', '9', 'B', 'a', 'b', '\uffee', '😀']);
  const { mastery_at_last_attempt, ...skill } = json.data.skills[3];
  assert.equal(mastery_at_last_attempt, last.json.data.mastery_after);
  assert.deepEqual([skill.total_attempts, skill.correct_attempts], [2, 1]);
  assert.equal(skill.last_attempt_at, occurred_at);
  const { section, mastered, plateau_detected, efficiency_index, efficiency_reason } = skill;
  assert.deepEqual([section, mastered, plateau_detected], [null, false, false]);
  assert.deepEqual([efficiency_index, efficiency_reason], [null, 'too_few_times']);
  assert.deepEqual([skill.correct_per_minute, skill.confidence_bias], [null, null]);
  assert.ok(skill.mastery <= mastery_at_last_attempt);
});

/** Counts answers of one learner on one skill and gives the skill's entry. */
async function entryAfter(user_id: string, answers: readonly Record<string, unknown>[]) {
  for (const answer of answers) {
    assert.equal((await caller.track(event({ user_id, ...answer }))).status, 200);
  }
  const { json } = await caller.get(`/api/v1/mastery/${user_id}`);
  return json.data.skills[0];
}

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString();

test('mastery: forgotten since the last answer, towards the prior and never below', async () => {
  const right = { is_correct: true, occurred_at: daysAgo(30) };
  const entry = await entryAfter('forgets', [right, right, right]);
  assert.equal(entry.mastery_at_last_attempt, 0.9828);
  // 30 days less one of grace at a half-life of 30: .3 + .682763 * 2^(-29/30).
  assert.equal(entry.mastery, 0.6494);
  const fresh = await entryAfter('fresh', [{ occurred_at: daysAgo(0.9) }]);
  assert.equal(fresh.mastery, fresh.mastery_at_last_attempt);
  const old = await entryAfter('old', [{ is_correct: false, occurred_at: '1970-01-02T00:00:00Z' }]);
  assert.deepEqual([old.mastery, old.mastery_at_last_attempt], [0.1458, 0.1458]);
});

test('mastery: mastered takes five attempts and a smoothed mastery, not one crossing', async () => {
  const right = { is_correct: true };
  assert.equal((await entryAfter('masters', [right, right, right, right])).mastered, false);
  assert.equal((await entryAfter('masters', [right, right, right])).mastered, true);
});

test('mastery: pace, efficiency and calibration, only from answers that tell them', async () => {
  const timed = { time_spent_seconds: 30, confidence_score: 5 };
  const two = await entryAfter('paced', [timed, { ...timed, is_correct: false }]);
  assert.deepEqual([two.efficiency_index, two.correct_per_minute, two.confidence_bias], [null, 1, 0.4]);
  const more = await entryAfter('paced', [{ time_spent_seconds: 1 }, { confidence_score: null }, timed]);
  assert.equal(more.total_attempts, 5);
  // Two right answers of three in 90 s; the rapid one and the one without a time do not count.
  assert.equal(more.correct_per_minute, 1.3333);
  assert.equal(more.confidence_bias, 0.2333);
  assert.ok(more.efficiency_index > 0 && more.efficiency_index < 100);
  assert.equal(Math.round(more.efficiency_index * 10) / 10, more.efficiency_index);
  assert.deepEqual([two.efficiency_reason, more.efficiency_reason], ['too_few_times', null]);
});

test('mastery: a low efficiency without a correct answer, none with many rapid answers', async () => {
  const wrong = { is_correct: false, time_spent_seconds: 40 };
  const low = await entryAfter('wrong', [wrong, wrong, wrong]);
  assert.ok(low.efficiency_index < 20);
  const rapid = Array.from({ length: 10 }, (_, i) => ({ time_spent_seconds: i < 3 ? 1 : 40 }));
  const { efficiency_index, efficiency_reason } = await entryAfter('rapid', rapid);
  assert.deepEqual([efficiency_index, efficiency_reason], [null, 'rapid_answers']);
});

test('mastery: a plateau shows once the test held three times', async () => {
  const wrong = Array.from({ length: 20 }, () => ({ is_correct: false }));
  assert.equal((await entryAfter('stuck', wrong)).plateau_detected, true);
});

test('health: its shape, without a key and with a wrong one', async () => {
  for (const key of [null, 'wrong', service.key]) {
    const { status, headers, json } = await whenWell(callerOf(service, key));
    assert.equal(status, 200);
    assert.equal(json.success, true);
    assert.equal(json.data.status, 'ok');
    assert.match(json.data.version, /^\d+\.\d+\.\d+/);
    assert.ok(json.data.uptime_seconds >= 0);
    assert.equal(json.data.idempotency_window_seconds, 86_400);
    assert.equal(json.data.idempotency_min_window_seconds, 600);
    const { redis, clickhouse, workers, pipeline } = json.data.checks;
    for (const check of [redis, clickhouse, workers, pipeline]) assert.equal(check.status, 'ok');
    for (const name of ['outbox_length', 'oldest_pending_seconds', 'journal_length', 'parked'])
      assert.ok(name in pipeline, name);
    assert.equal(headers.ratelimit, undefined);
  }
});

test('livez and readyz: status and reasons, no envelope, no key', async () => {
  const livez = await stranger.get('/livez');
  assert.deepEqual([livez.status, livez.json], [200, { status: 'ok', reasons: [] }]);
  const readyz = await whenWell(stranger, '/readyz');
  assert.deepEqual([readyz.status, readyz.json], [200, { status: 'ready', reasons: [] }]);
});
