/** Predictions of learners of any habit, of a class, and under a plan of practice. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { callerOf, event, type JsonAnswer } from '../support/http/http.js';
import { clickhouseOf, keysOf, sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const clickhouse = clickhouseOf({ after }, service);
const caller = callerOf(service, service.key);
const day = 86_400_000;

// Dates of goals are told by days from today on.
beforeEach(awayFromMidnight);

const put = (path: string, body: object): Promise<JsonAnswer> =>
  caller.call({ method: 'PUT', path: `/api/v1/${path}`, body: JSON.stringify(body) });
const post = (path: string, body: object, by = caller): Promise<JsonAnswer> =>
  by.call({ path: `/api/v1/${path}`, body: JSON.stringify(body) });
const predict = async (userId: string, query = '') => {
  const answer = await caller.get(`/api/v1/predictions/${userId}${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.json.data;
};

/** Answers of a learner over several days up to `daysAgo`, a share of them right, on skills in turn. */
async function practise(userId: string, skills: readonly string[], habit: Habit): Promise<void> {
  const { days, perDay, right, daysAgo = 0 } = habit;
  const events = Array.from({ length: days * perDay }, (_, i) =>
    event({
      user_id: userId,
      skill_id: skills[i % skills.length],
      is_correct: (i * 7919) % 100 < 100 * right,
      occurred_at: new Date(Date.now() - (daysAgo + days - 1 - Math.floor(i / perDay)) * day).toISOString(),
    }),
  );
  for (let from = 0; from < events.length; from += 1000) {
    assert.equal((await caller.trackAll(events.slice(from, from + 1000))).status, 200);
  }
}

interface Habit {
  readonly days: number;
  readonly perDay: number;
  readonly right: number;
  readonly daysAgo?: number;
}

const skillsOf = (section: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${section} ${i}`);
const math = skillsOf('math', 8);
const rw = skillsOf('rw', 8);
for (const skillId of math) await put(`skills/${skillId.replace(' ', '%20')}`, { section: 'math' });
for (const skillId of rw) await put(`skills/${skillId.replace(' ', '%20')}`, { section: 'rw', weight: 2 });

test('one answer: the population, a little moved, and wide', async () => {
  await practise('one', ['math 0'], { days: 1, perDay: 1, right: 1 });
  const data = await predict('one');
  assert.deepEqual(data.data_points, { math: 1, rw: 0 });
  assert.ok(Math.abs(data.current_total - 1030) <= 80, `${data.current_total}`);
  const { low, high } = data.confidence_intervals.total;
  assert.ok(high - low >= 300);
});

test('one section only: the other is borrowed, wide, and asked for', async () => {
  await practise('mathematician', math, { days: 5, perDay: 20, right: 0.95 });
  const data = await predict('mathematician');
  assert.equal(data.data_points.rw, 0);
  assert.ok(data.current_math > 560 && data.current_rw > 520 && data.current_rw < data.current_math);
  const width = (part: string) => data.confidence_intervals[part].high - data.confidence_intervals[part].low;
  assert.ok(width('rw') > width('math'));
  assert.equal(data.recommendation_codes[0].code, 'NO_SECTION');
  assert.match(data.recommendations[0], /Reading and Writing/);
});

test('practice goes on to raise the forecast, idleness lets it fall', async () => {
  const all = [...math, ...rw];
  await practise('busy', all, { days: 14, perDay: 20, right: 0.7 });
  await practise('away', all, { days: 14, perDay: 20, right: 0.95, daysAgo: 365 });
  const busy = await predict('busy', '?days=365');
  assert.ok(busy.predicted_total_in_365_days > busy.current_total);
  const away = await predict('away', '?days=365');
  assert.ok(away.predicted_total_in_365_days <= away.current_total);
  assert.ok(away.recommendation_codes.some(({ code }: { code: string }) => code === 'REVIEW_DUE'));
});

test('a learner of 500 skills, and one whose clock is ahead', async () => {
  const many = Array.from({ length: 500 }, (_, i) => `many ${i}`);
  await practise('polymath', many, { days: 2, perDay: 500, right: 0.6 });
  assert.deepEqual((await predict('polymath')).data_points, { math: 500, rw: 500 });
  const ahead = new Date(Date.now() + 4 * 60_000).toISOString();
  const { status } = await caller.track(event({ user_id: 'ahead', skill_id: 'math 0', occurred_at: ahead }));
  assert.equal(status, 200);
  assert.equal((await predict('ahead')).data_points.math, 1);
});

test('a change of section or weight shows in the next prediction and the next answer', async () => {
  await practise('mover', ['moving'], { days: 1, perDay: 30, right: 0.9 });
  const before = await predict('mover');
  assert.deepEqual(before.data_points, { math: 15, rw: 15 });
  await put('skills/moving', { section: 'math' });
  const after = await predict('mover');
  assert.deepEqual(after.data_points, { math: 30, rw: 0 });
  assert.ok(after.reliability.math > before.reliability.math && after.reliability.rw < before.reliability.rw);
  await caller.track(event({ user_id: 'mover', skill_id: 'moving' }));
  assert.deepEqual((await predict('mover')).data_points, { math: 31, rw: 0 });
  await practise('mover', ['math 7'], { days: 1, perDay: 30, right: 0.1 });
  const light = (await predict('mover')).current_math;
  await put('skills/math%207', { section: 'math', weight: 50 });
  assert.ok((await predict('mover')).current_math < light);
  await put('skills/math%207', { section: 'math' });
});

test('a goal: in reach, met, out of reach', async () => {
  const all = [...math, ...rw];
  await practise('aimer', all, { days: 14, perDay: 30, right: 0.75 });
  const { current_total } = await predict('aimer');
  const goalOf = async (targetScore: number, inDays?: number, userId = 'aimer') => {
    const target_date =
      inDays === undefined ? null : new Date(Date.now() + inDays * day).toISOString().slice(0, 10);
    assert.equal((await put(`goals/${userId}`, { target_score: targetScore, target_date })).status, 200);
    return predict(userId);
  };
  const near = await goalOf(current_total + 40);
  const { days_to_goal: days } = near.goal_tracking;
  assert.ok(days > 0 && days <= 365 && near.goal_tracking.on_track);
  const there = await predict('aimer', `?days=${days}`);
  assert.ok(there[`predicted_total_in_${days}_days`] >= current_total + 40);
  if (days > 1) {
    const dayBefore = await predict('aimer', `?days=${days - 1}`);
    assert.ok(dayBefore[`predicted_total_in_${days - 1}_days`] < current_total + 40);
  }
  const soon = await goalOf(current_total + 40, Math.max(0, days - 1));
  assert.equal(soon.goal_tracking.on_track, false);
  assert.ok(soon.recommendation_codes.some(({ code }: { code: string }) => code === 'GOAL_GAP'));
  const met = await goalOf(current_total);
  assert.deepEqual(
    [met.goal_tracking.days_to_goal, met.goal_tracking.progress_percent, met.goal_tracking.on_track],
    [0, 100, true],
  );
  const never = await goalOf(1600, 10, 'away');
  assert.deepEqual([never.goal_tracking.days_to_goal, never.goal_tracking.on_track], [null, false]);
  assert.match(never.recommendations[0], /1600/);
});

test('recommendations are at most five texts, the same for the same learner', async () => {
  const first = await predict('busy');
  assert.ok(first.recommendations.length <= 5);
  assert.equal(first.recommendations.length, first.recommendation_codes.length);
  for (const text of first.recommendations) assert.ok(text.length <= 200);
  assert.deepEqual((await predict('busy')).recommendations, first.recommendations);
  assert.deepEqual((await predict('busy', '?locale=en')).recommendations, first.recommendations);
  assert.equal((await caller.get('/api/v1/predictions/busy?locale=xx')).status, 400);
});

test('a class in one request: each as by itself, the missing told one by one', async () => {
  const user_ids = ['busy', 'nobody', 'one', 'busy'];
  const { status, json } = await post('predictions', { user_ids, days: 60, confidence_level: 0.9 });
  assert.equal(status, 200);
  assert.deepEqual([json.data.found, json.data.missing], [3, 1]);
  for (const [i, { index, user_id, status, data, error }] of json.data.results.entries()) {
    assert.deepEqual([index, user_id], [i, user_ids[i]]);
    if (user_id === 'nobody') {
      assert.deepEqual([status, error.code], [404, 'USER_NOT_FOUND']);
    } else assert.deepEqual(data, await predict(user_id, '?days=60&confidence_level=0.9'));
  }
  const full = Array.from({ length: 500 }, (_, i) => (i % 2 === 0 ? 'busy' : `nobody ${i}`));
  const whole = await post('predictions', { user_ids: full });
  assert.deepEqual([whole.json.data.found, whole.json.data.missing], [250, 250]);
});

test('the share of right answers is told with its interval, the narrower the more answers', async () => {
  const narrow = (await predict('busy', '?days=30')).expected_accuracy;
  const wide = (await predict('busy', '?days=30&confidence_level=0.95')).expected_accuracy;
  assert.ok(wide.low <= narrow.low && narrow.low < narrow.share && narrow.share < narrow.high);
  assert.ok(narrow.high <= wide.high && wide.low >= 0 && wide.high <= 1);
  assert.ok(Math.abs(narrow.share - 0.7) < 0.1, `${narrow.share}`);
  assert.equal(narrow.answers, 600);
  assert.equal((await predict('away')).expected_accuracy.answers, 10);
});

test('served forecasts reach ClickHouse, one by one and as a class', async () => {
  await predict('aimer', '?days=351');
  await post('predictions', { user_ids: ['aimer', 'busy', 'nobody'], days: 352 });
  const query = `SELECT user_id, toUInt32(forecast_days) AS days, toUInt32(current_total) AS total, expected_share AS share
    FROM forecasts WHERE tenant = '${service.tenant}' AND forecast_days IN (351, 352) ORDER BY days, user_id`;
  const rows = await askUntil(
    'the forecasts',
    () => selectRows<{ user_id: string; days: number; total: number; share: number }>(clickhouse, query),
    ({ length }) => length >= 3,
  );
  assert.deepEqual(
    rows.map(({ user_id, days }) => [user_id, days]),
    [
      ['aimer', 351],
      ['aimer', 352],
      ['busy', 352],
    ],
  );
  const { current_total, expected_accuracy } = await predict('aimer', '?days=351');
  assert.equal(rows[0]?.total, current_total);
  assert.ok(Math.abs((rows[0]?.share ?? 0) - expected_accuracy.share) < 0.001);
});

test('what is no class is refused', async () => {
  const bodies = [
    {},
    { user_ids: [] },
    { user_ids: 'busy' },
    { user_ids: [''] },
    { user_ids: ['busy', 3] },
    { user_ids: Array.from({ length: 501 }, () => 'busy') },
    { user_ids: ['busy'], days: 0 },
    { user_ids: ['busy'], confidence_level: 1 },
  ];
  for (const body of bodies) {
    const { status, json } = await post('predictions', body);
    assert.deepEqual([status, json.error.code], [400, 'INVALID_REQUEST'], JSON.stringify(body).slice(0, 80));
  }
});

test('a plan: more practice does not lower it, none is idleness, the needed rate reaches the target', async () => {
  const plan = async (body: object) => {
    const { status, json } = await post('predictions/busy/what-if', { days: 120, ...body });
    assert.equal(status, 200, JSON.stringify(json));
    return json.data;
  };
  const totals: number[] = [];
  for (const rate of [0, 1, 20, 100, 1000]) {
    totals.push((await plan({ answers_per_day: rate })).predicted_total_in_120_days);
  }
  assert.deepEqual(
    totals,
    totals.toSorted((a, b) => a - b),
  );
  const now = await predict('busy', '?days=120');
  const present = await plan({ answers_per_day: 20 });
  assert.equal(present.without_plan.predicted_total_in_120_days, now.predicted_total_in_120_days);
  assert.equal(present.current_total, now.current_total);
  const target_score = now.current_total + 60;
  const aimed = await plan({ answers_per_day: 0, target_score });
  const needed = aimed.needed_answers_per_day;
  assert.ok(needed > 0);
  assert.ok((await plan({ answers_per_day: needed })).predicted_total_in_120_days >= target_score);
  assert.ok((await plan({ answers_per_day: needed - 1 })).predicted_total_in_120_days < target_score);
  assert.equal((await plan({ answers_per_day: 1, target_score: 1600 })).goal_tracking.target_score, 1600);
  assert.deepEqual([aimed.needed_within_days, aimed.goal_tracking.target_date], [120, null]);
  // What is reached now and forgotten without practice needs some.
  const idle = totals[0] as number;
  const kept = await plan({ answers_per_day: 0, target_score: now.current_total });
  assert.equal(kept.needed_answers_per_day > 0, idle < now.current_total);
  assert.equal((await plan({ answers_per_day: 0, target_score: idle })).needed_answers_per_day, 0);
  const chosen = await plan({ answers_per_day: 10, skills: ['math 0', 'math 1'] });
  assert.deepEqual(chosen.plan, { answers_per_day: 10, skills: ['math 0', 'math 1'], days: 120 });
});

test('without days a plan is for 30, and a dated goal is to be reached by its date', async () => {
  const { current_total } = await predict('aimer');
  const target_date = new Date(Date.now() + 200 * day).toISOString().slice(0, 10);
  await put('goals/aimer', { target_score: Math.min(1600, current_total + 50), target_date });
  const { json } = await post('predictions/aimer/what-if', { answers_per_day: 5 });
  assert.deepEqual([json.data.plan.days, json.data.needed_within_days], [30, 200]);
  const needed = json.data.needed_answers_per_day;
  const { json: asked } = await post('predictions/aimer/what-if', { answers_per_day: needed, days: 200 });
  assert.ok(asked.data.goal_tracking.on_track);
});

test('what is no plan is refused, and unknown skills are told', async () => {
  for (const body of [
    {},
    { answers_per_day: -1 },
    { answers_per_day: 1001 },
    { answers_per_day: '5' },
    { answers_per_day: 5, skills: [] },
    { answers_per_day: 5, skills: ['math 0', 'math 0'] },
    { answers_per_day: 5, days: 366 },
    { answers_per_day: 5, target_score: 1605 },
  ]) {
    const { status, json } = await post('predictions/busy/what-if', body);
    assert.deepEqual([status, json.error.code], [400, 'INVALID_REQUEST'], JSON.stringify(body));
  }
  const unknown = await post('predictions/busy/what-if', {
    answers_per_day: 5,
    skills: ['math 0', 'juggling'],
  });
  assert.deepEqual([unknown.status, unknown.json.error.code], [404, 'SKILL_NOT_FOUND']);
  assert.deepEqual(unknown.json.error.details, [{ path: 'skills', message: 'juggling is not known' }]);
  const nobody = await post('predictions/nobody/what-if', { answers_per_day: 5 });
  assert.deepEqual([nobody.status, nobody.json.error.code], [404, 'USER_NOT_FOUND']);
});

test('reading is enough for a class and a plan, and another tenant sees nobody', async () => {
  const reader = callerOf(service, await keys.add({ scopes: ['read'] }));
  const writer = callerOf(service, await keys.add({ scopes: ['write'] }));
  const stranger = callerOf(service, await keys.add({ tenant: 'elsewhere' }));
  assert.equal((await post('predictions', { user_ids: ['busy'] }, reader)).status, 200);
  assert.equal((await post('predictions/busy/what-if', { answers_per_day: 5 }, reader)).status, 200);
  assert.equal((await post('predictions', { user_ids: ['busy'] }, writer)).status, 403);
  assert.equal((await post('predictions', { user_ids: ['busy'] }, stranger)).json.data.found, 0);
  assert.equal((await post('predictions/busy/what-if', { answers_per_day: 5 }, stranger)).status, 404);
});
