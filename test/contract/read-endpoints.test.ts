/** GET endpoints: ids in the path, values in the query, pages, the learner's values, and health. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { allScopes } from '../../src/contracts/access/access.js';
import { indices } from '../../src/lists.js';
import { awayFromMidnight, timeAgo } from '../support/builders/day.js';
import { assertDescribed } from '../support/http/answer-check.js';
import { callerOf, event, outcomeOf } from '../support/http/http.js';
import { routeRequests } from '../support/http/route-requests.js';
import { apiRoutes, nameOf } from '../support/http/route-table.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { waitUntilHealthy } from '../support/wait.js';

const service = await sharedService();
const caller = callerOf(service, service.key);
const stranger = callerOf(service, null);

beforeEach(awayFromMidnight);

const events = indices(60).map((i) =>
  event({ user_id: 'ada', skill_id: `skill-${i % 7}`, is_correct: i % 3 > 0, time_spent_seconds: 30 }),
);
assert.equal((await caller.trackAll(events)).status, 200);
assert.equal((await caller.track(event({ user_id: 'one' }))).status, 200);

const predictedNames = (days: number) =>
  ['math', 'rw', 'total'].map((part) => `predicted_${part}_in_${days}_days`);

async function assertConsistentPrediction(user: string, days = 30, level = 0.8): Promise<void> {
  const query = `days=${days}&confidence_level=${level}`;
  const { data } = (await caller.get(`/api/v1/predictions/${user}?${query}`)).json;
  const names = new Set([...predictedNames(30), ...predictedNames(days)]);
  assert.deepEqual(new Set(Object.keys(data).filter((name) => name.startsWith('predicted_'))), names);
  assert.equal(data.current_total, data.current_math + data.current_rw);
  for (const horizon of [30, days]) {
    const [math, rw, total] = predictedNames(horizon).map((name) => data[name]);
    assert.equal(total, math + rw);
  }
  for (const [part, sections] of Object.entries({ math: 1, rw: 1, total: 2 })) {
    const { low, high } = data.confidence_intervals[part];
    const score = data[`predicted_${part}_in_${days}_days`];
    for (const figure of [low, score, high, data[`current_${part}`]])
      assert.ok(
        figure >= 200 * sections && figure <= 800 * sections && figure % 10 === 0,
        `${part} ${figure}`,
      );
    assert.ok(low <= score && score <= high);
  }
  assert.deepEqual([data.forecast_days, data.confidence_level], [days, level]);
}

test('GET /predictions/{user_id} returns consistent scores for any horizon and confidence level', async () => {
  for (const user of ['ada', 'one']) {
    await assertConsistentPrediction(user);
    await assertConsistentPrediction(user, 1, 0.5);
    await assertConsistentPrediction(user, 90, 0.99);
    await assertConsistentPrediction(user, 365);
  }
});

test('GET /predictions/{user_id} returns the same goal_tracking for any horizon', async () => {
  const goalFor = async (query: string) => {
    const path = `/api/v1/predictions/ada${query}`;
    const { goal_probability, ...goal } = (await caller.get(path)).json.data.goal_tracking;
    assert.ok(goal_probability >= 0 && goal_probability <= 1);
    return goal;
  };
  const goal = await goalFor('');
  const names = 'days_to_goal is_set on_track progress_percent status target_date target_score'.split(' ');
  assert.deepEqual(Object.keys(goal).sort(), names);
  assert.ok(goal.days_to_goal === null || (Number.isInteger(goal.days_to_goal) && goal.days_to_goal <= 365));
  assert.equal(typeof goal.on_track, 'boolean');
  assert.ok(Number.isInteger(goal.target_score));
  assert.equal(goal.progress_percent, Math.round(goal.progress_percent * 10) / 10);
  assert.deepEqual(await goalFor('?days=365'), goal);
});

const validQueries = ['', '?', '?other=&other=&other', '?day=0', '?%64ays=7', '?days=007', '?days=365'];
const invalidQueries = [
  ...['days=0', 'days=366', 'days=-1', 'days=%2B7', 'days=30.5', 'days=1e2', 'days=0x10', 'days=abc'],
  ...['days=NaN', 'days=null', 'days=', 'days', 'days=7&days=7', 'days=7&%64ays=8', 'days=7,8'],
  ...['days=%207', 'days=%zz', 'days=%FF', 'days=99999999999999999999', 'confidence_level=0.49'],
  ...['confidence_level=0.995', 'confidence_level=', 'confidence_level=0,8'],
];

test('GET /predictions/{user_id} rejects invalid query values and ignores unknown names', async () => {
  for (const query of validQueries)
    assert.equal((await caller.get(`/api/v1/predictions/ada${query}`)).status, 200, query);
  for (const query of invalidQueries)
    assert.equal(
      outcomeOf(await caller.get(`/api/v1/predictions/ada?${query}`)),
      '400 INVALID_REQUEST',
      query,
    );
});

test('Every paged call rejects a limit out of range and a cursor that it did not return', async () => {
  const operator = callerOf(service, await (await keysOf({ after }, service)).add({ scopes: allScopes }));
  const hook = { url: 'https://hooks.example.org', event_types: ['*'] };
  const { webhook_id: webhookId } = (await operator.send('POST', '/api/v1/webhooks', hook)).json.data;
  const ids = { userId: 'ada', skillId: 'skill-1', eventId: 'e', erasureId: '1-0', webhookId };
  const encode = (text: string): string => Buffer.from(text).toString('base64url');
  const cursors = ['', 'x', '%FF', ...['skill-1', 'after:', 'before:1'].map(encode)];
  const queries = ['0', '1001', '1.5', '', '5&limit=5'].map((limit) => `limit=${limit}`);
  queries.push(...cursors.map((cursor) => `cursor=${cursor}`));
  const paged = apiRoutes.filter(({ query }) => query?.names.includes('cursor'));
  assert.ok(paged.length > 10);
  for (const route of paged)
    for (const query of queries) {
      const [path] = routeRequests[nameOf(route)]?.(ids).path?.split('?') ?? [];
      const outcome = outcomeOf(await operator.get(`${path}?${query}`));
      assert.equal(outcome, '400 INVALID_REQUEST', `${path}?${query}`);
    }
});

test('Calls with . and .. in the path respond as described, and only PUT rejects such ids', async () => {
  const admin = callerOf(service, await (await keysOf({ after }, service)).add({ scopes: allScopes }));
  const idsOf = (id: string) => ({
    ...{ userId: id, skillId: id, eventId: id, erasureId: id, webhookId: id, groupId: id, keyId: id },
    messageId: id,
  });
  const withId = apiRoutes.filter(({ path }) => /:\w+_id/.test(path));
  for (const id of ['.', '..'])
    for (const { method, path: pattern } of withId) {
      const requestOf = routeRequests[nameOf({ method, path: pattern })];
      const path = requestOf?.(idsOf(id)).path ?? '';
      const answer = await admin.call({ method, body: null, ...requestOf?.(idsOf('skill-1')), path });
      assertDescribed(answer, method, path);
      if (method === 'PUT') assert.match(answer.json.error.message, /path must not be/);
      else if (answer.status === 400) assert.doesNotMatch(answer.text, /in the path/);
    }
});

test('Queries and lists of reads accept . and .., and a group can remove such members', async () => {
  const respond = async (method: string, path: string, body?: object) =>
    assert.equal((await caller.send(method, `/api/v1/${path}`, body)).status, 200, path);
  for (const path of ['learners?prefix=.', 'model/reliability?skill_id=.']) await respond('GET', path);
  assert.equal((await caller.get('/api/v1/velocity/ada?skill_id=..')).status, 404);
  for (const path of ['mastery', 'predictions', 'learners/profiles'])
    await respond('POST', path, { user_ids: ['ada', '..'] });
  await respond('PUT', 'groups/dots', { name: 'Dots', user_ids: ['ada'] });
  await respond('POST', 'groups/dots/members', { remove: ['..'] });
  const added = await caller.send('POST', '/api/v1/groups/dots/members', { add: ['..'] });
  assert.equal(outcomeOf(added), '400 INVALID_REQUEST');
});

/** Ids as sent, by the code of the response. */
const idsInPath: Readonly<Record<string, readonly string[]>> = {
  '404 USER_NOT_FOUND': [
    ...['unknown', '%2F', 'a%2Fb%3Fc%23d', 'a%25', '..', 'x'.repeat(128)],
    encodeURIComponent('😀'.repeat(128)),
  ],
  '404 NOT_FOUND': ['', 'a/b/c', 'a/'],
  '400 INVALID_REQUEST': [
    ...['x'.repeat(129), '%', '%2', '%zz', '%00', '%0A', '%C2%85', '%FF', '%C0%AF', '%ED%A0%80'],
  ],
};

test('GET /mastery/{user_id} and /predictions/{user_id} decode and check the id in the path', async () => {
  for (const call of ['mastery', 'predictions'])
    for (const [expected, ids] of Object.entries(idsInPath))
      for (const id of ids) assert.equal(outcomeOf(await caller.get(`/api/v1/${call}/${id}`)), expected, id);
  const names = [
    'a/b',
    'a%b',
    'a b+c',
    'ä?&#',
    '...',
    '😀',
    '100%2F',
    'café',
    'cafe\u0301',
    "'; --",
    '__proto__',
  ];
  for (const user_id of names) {
    await caller.track(event({ user_id, skill_id: '__proto__' }));
    const path = `/api/v1/mastery/${encodeURIComponent(user_id)}`;
    const { data } = (await caller.get(path)).json;
    const [{ skill_id, total_attempts }] = data.skills;
    assert.deepEqual([data.user_id, skill_id, total_attempts], [user_id, '__proto__', 1]);
  }
});

test('GET /mastery/{user_id} returns each skill in the order of UTF-8 bytes with its counts', async () => {
  const user_id = 'mastery';
  const occurred_at = '2026-01-15T10:00:00.250Z';
  for (const skill_id of ['b', 'a', 'B', '\uffee', '😀', '10', '9'])
    await caller.track(event({ user_id, skill_id, occurred_at, is_correct: false }));
  const last = await caller.track(event({ user_id, skill_id: 'a', occurred_at }));
  const { data } = (await caller.get(`/api/v1/mastery/${user_id}`)).json;
  assert.equal(data.user_id, user_id);
  assert.deepEqual(valuesOf(data.skills, 'skill_id'), ['10', '9', 'B', 'a', 'b', '\uffee', '😀']);
  const skill = data.skills[3];
  const expected = {
    ...{ skill_id: 'a', mastery_at_last_attempt: last.json.data.mastery_after },
    ...{ total_attempts: 2, correct_attempts: 1, last_attempt_at: occurred_at },
    ...{ section: null, mastered: false, plateau_detected: false, efficiency_index: null },
    ...{ efficiency_reason: 'too_few_times', correct_per_minute: null, confidence_bias: null },
  };
  assert.deepEqual(skill, { ...skill, ...expected });
  assert.ok(skill.mastery <= skill.mastery_at_last_attempt);
});

/** @returns the skill of the learner after these answers */
async function skillAfter(user_id: string, answers: readonly Record<string, unknown>[]) {
  for (const answer of answers) assert.equal((await caller.track(event({ user_id, ...answer }))).status, 200);
  return (await caller.get(`/api/v1/mastery/${user_id}`)).json.data.skills[0];
}

test('GET /mastery/{user_id} returns mastery decayed towards the prior since the last answer', async () => {
  const right = { is_correct: true, occurred_at: timeAgo(30) };
  const decayed = await skillAfter('decayed', [right, right, right]);
  // 30 days less one of grace at a half-life of 30: .3 + .682763 * 2^(-29/30).
  assert.deepEqual([decayed.mastery_at_last_attempt, decayed.mastery], [0.9828, 0.6494]);
  const fresh = await skillAfter('fresh', [{ occurred_at: timeAgo(0.9) }]);
  assert.equal(fresh.mastery, fresh.mastery_at_last_attempt);
  const old = await skillAfter('old', [{ is_correct: false, occurred_at: '1970-01-02T00:00:00Z' }]);
  assert.deepEqual([old.mastery, old.mastery_at_last_attempt], [0.1458, 0.1458]);
});

test('GET /mastery/{user_id} returns mastered only after five attempts, and plateau_detected', async () => {
  const right = { is_correct: true };
  assert.equal((await skillAfter('masters', [right, right, right, right])).mastered, false);
  assert.equal((await skillAfter('masters', [right, right, right])).mastered, true);
  assert.equal((await skillAfter('stuck', Array(20).fill({ is_correct: false }))).plateau_detected, true);
});

test('GET /mastery/{user_id} returns pace and confidence bias of answers with time and confidence', async () => {
  const timed = { time_spent_seconds: 30, confidence_score: 5 };
  const two = await skillAfter('paced', [timed, { ...timed, is_correct: false }]);
  assert.deepEqual([two.efficiency_index, two.correct_per_minute, two.confidence_bias], [null, 1, 0.4]);
  const five = await skillAfter('paced', [{ time_spent_seconds: 1 }, { confidence_score: null }, timed]);
  // Two correct answers of three in 90 s: the rapid answer and the one without a time do not count.
  assert.deepEqual(
    [five.correct_per_minute, five.confidence_bias, five.efficiency_reason],
    [1.3333, 0.2333, null],
  );
});

test('GET /health returns all checks with any key or none', async () => {
  for (const key of [null, 'wrong', service.key]) {
    const { status, headers, json } = await waitUntilHealthy(callerOf(service, key));
    const { data } = json;
    assert.deepEqual([status, json.success, data.status], [200, true, 'ok']);
    assert.match(data.version, /^\d+\.\d+\.\d+/);
    assert.ok(data.uptime_seconds >= 0);
    const window = [data.idempotency_window_seconds, data.idempotency_min_window_seconds];
    assert.deepEqual(window, [86_400, 600]);
    for (const name of ['redis', 'clickhouse', 'workers', 'pipeline'])
      assert.equal(data.checks[name].status, 'ok', name);
    for (const name of ['outbox_length', 'oldest_pending_seconds', 'journal_length', 'parked'])
      assert.ok(name in data.checks.pipeline, name);
    assert.equal(headers.ratelimit, undefined);
  }
});

test('GET /livez and /readyz return status and reasons without envelope and key', async () => {
  const livez = await stranger.get('/livez');
  assert.deepEqual([livez.status, livez.json], [200, { status: 'ok', reasons: [] }]);
  const readyz = await waitUntilHealthy(stranger, '/readyz');
  assert.deepEqual([readyz.status, readyz.json], [200, { status: 'ready', reasons: [] }]);
});
