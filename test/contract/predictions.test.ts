/** Forecasts of single learners, of classes, and under a practice plan. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { selectRows } from '../../src/warehouse/clickhouse/client.js';
import { awayFromMidnight, timeAgo } from '../support/builders/day.js';
import { callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { clickhouseOf, sharedService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const caller = callerOf(service, service.key);

const put = async (path: string, body: object): Promise<void> => {
  const { status, text } = await caller.send('PUT', `/api/v1/${path}`, body);
  assert.equal(status, 200, text);
};
const post = (path: string, body: object): Promise<JsonAnswer> =>
  caller.send('POST', `/api/v1/${path}`, body);
const predict = async (userId: string, query = '') => {
  const { status, json, text } = await caller.get(`/api/v1/predictions/${userId}${query}`);
  assert.equal(status, 200, text);
  return json.data;
};
const plan = async (userId: string, body: object) => {
  const { status, json, text } = await post(`predictions/${userId}/what-if`, body);
  assert.equal(status, 200, text);
  return json.data;
};
const codesOf = (data: JsonAnswer['json']): string[] =>
  data.recommendation_codes.map(({ code }: { code: string }) => code);
const dateIn = (days: number): string => timeAgo(-days).slice(0, 10);

/** Daily answers up to `daysAgo` on skills in turn. The share of correct ones rises by `rise`. */
async function practise(
  userId: string,
  skills: readonly string[],
  { days = 14, perDay = 20, right = 0.7, rise = 0, daysAgo = 0 },
): Promise<void> {
  const events = Array.from({ length: days * perDay }, (_, i) =>
    event({
      user_id: userId,
      skill_id: skills[i % skills.length],
      is_correct: (i * 7919) % 100 < 100 * (right + (rise * i) / (days * perDay)),
      occurred_at: timeAgo(daysAgo + days - 1 - Math.floor(i / perDay)),
    }),
  );
  assert.equal((await caller.trackAll(events)).status, 200);
}

const math = ['math-0', 'math-1', 'math-2', 'math-3'];
const readingWriting = ['rw-0', 'rw-1', 'rw-2', 'rw-3'];
const all = [...math, ...readingWriting];

// Goal dates are relative to today.
beforeEach(awayFromMidnight);

before(async () => {
  for (const skillId of math) await put(`skills/${skillId}`, { section: 'math' });
  for (const skillId of readingWriting) await put(`skills/${skillId}`, { section: 'rw', weight: 2 });
  await practise('active', all, {});
  await practise('improving', all, { right: 0.4, rise: 0.5 });
  await practise('idle', all, { right: 0.95, daysAgo: 365 });
  await practise('mathematician', math, { days: 5, right: 0.95 });
});

test('A prediction estimates a section without answers from the other one, with a wider interval', async () => {
  const data = await predict('mathematician');
  assert.deepEqual(data.data_points, { math: 100, rw: 0 });
  assert.ok(data.current_math > 560 && data.current_rw > 520 && data.current_rw < data.current_math);
  const width = (part: string) => data.confidence_intervals[part].high - data.confidence_intervals[part].low;
  assert.ok(width('rw') > width('math'));
  assert.equal(codesOf(data)[0], 'NO_SECTION');
  assert.match(data.recommendations[0], /Reading and Writing/);
});

test('goal_tracking reports the first day on which the forecast reaches the target', async () => {
  const { current_total } = await predict('improving');
  const target = current_total + 40;
  const trackingOf = async (userId: string, goal: object) => {
    await put(`goals/${userId}`, goal);
    return predict(userId);
  };
  const { days_to_goal: days, on_track } = (await trackingOf('improving', { target_score: target }))
    .goal_tracking;
  assert.ok(days > 1 && days <= 365 && on_track, `${days} days`);
  const totalIn = async (n: number) =>
    (await predict('improving', `?days=${n}`))[`predicted_total_in_${n}_days`];
  assert.ok((await totalIn(days)) >= target);
  assert.ok((await totalIn(days - 1)) < target);

  const early = await trackingOf('improving', { target_score: target, target_date: dateIn(days - 1) });
  assert.equal(early.goal_tracking.on_track, false);
  assert.ok(codesOf(early).includes('GOAL_GAP'));
  const met = (await trackingOf('improving', { target_score: current_total })).goal_tracking;
  assert.deepEqual([met.days_to_goal, met.progress_percent, met.on_track], [0, 100, true]);
  const never = await trackingOf('idle', { target_score: 1600, target_date: dateIn(10) });
  assert.deepEqual([never.goal_tracking.days_to_goal, never.goal_tracking.on_track], [null, false]);
  assert.deepEqual(codesOf(never).slice(0, 2), ['IDLE', 'GOAL_GAP']);
  assert.match(never.recommendations[1], /1600/);
});

test('A prediction has at most five recommendations, in a known language', async () => {
  const { recommendations, recommendation_codes } = await predict('mathematician');
  assert.ok(recommendations.length > 0 && recommendations.length <= 5);
  assert.equal(recommendations.length, recommendation_codes.length);
  assert.deepEqual((await predict('mathematician', '?locale=en')).recommendations, recommendations);
  assert.equal((await caller.get('/api/v1/predictions/active?locale=xx')).status, 400);
});

test('expected_accuracy contains the share of correct answers and narrows with more answers', async () => {
  const narrow = (await predict('active', '?days=30')).expected_accuracy;
  const wide = (await predict('active', '?days=30&confidence_level=0.95')).expected_accuracy;
  assert.ok(wide.low <= narrow.low && narrow.low < narrow.share && narrow.share < narrow.high);
  assert.ok(narrow.high <= wide.high && wide.low >= 0 && wide.high <= 1);
  assert.ok(Math.abs(narrow.share - 0.7) < 0.1, `${narrow.share}`);
  assert.equal(narrow.answers, 600, '20 answers a day for 30 days');
  assert.equal((await predict('idle')).expected_accuracy.answers, 10, 'the minimum without practice');
});

test('POST predictions returns each learner like the single call, and 404 for unknown ones', async () => {
  const user_ids = ['active', 'nobody', 'idle', 'active'];
  const { status, json } = await post('predictions', { user_ids, days: 60, confidence_level: 0.9 });
  assert.equal(status, 200);
  assert.deepEqual([json.data.found, json.data.missing], [3, 1]);
  for (const [i, { index, user_id, ...result }] of json.data.results.entries()) {
    assert.deepEqual([index, user_id], [i, user_ids[i]]);
    if (user_id === 'nobody') assert.deepEqual([result.status, result.error.code], [404, 'USER_NOT_FOUND']);
    else assert.deepEqual(result.data, await predict(user_id, '?days=60&confidence_level=0.9'));
  }
  const half = Array.from({ length: 500 }, (_, i) => (i % 2 === 0 ? 'active' : `nobody ${i}`));
  const { data } = (await post('predictions', { user_ids: half })).json;
  assert.deepEqual([data.found, data.missing], [250, 250]);
});

test('Every served forecast is stored in ClickHouse', async () => {
  const { current_total, expected_accuracy } = await predict('active', '?days=351');
  await post('predictions', { user_ids: ['active', 'idle', 'nobody'], days: 352 });
  const query = `SELECT user_id, toUInt32(forecast_days) AS days, toUInt32(current_total) AS total, expected_share AS share
    FROM forecasts WHERE tenant = '${service.tenant}' AND forecast_days IN (351, 352) ORDER BY days, user_id`;
  const clickhouse = clickhouseOf({ after }, service);
  const rows = await askUntil(
    'three forecasts',
    () => selectRows<{ user_id: string; days: number; total: number; share: number }>(clickhouse, query),
    ({ length }) => length >= 3,
  );
  const found = rows.map(({ user_id, days }) => `${user_id} ${days}`);
  assert.deepEqual(found, ['active 351', 'active 352', 'idle 352']);
  assert.equal(rows[0]?.total, current_total);
  assert.ok(Math.abs((rows[0]?.share ?? 0) - expected_accuracy.share) < 0.001);
});

test('A practice plan returns the least answers per day that reach the target', async () => {
  const days = 120;
  const now = await predict('improving', '?days=120');
  const planned = await plan('improving', { days, answers_per_day: 20 });
  assert.deepEqual(
    [planned.current_total, planned.without_plan.predicted_total_in_120_days],
    [now.current_total, now.predicted_total_in_120_days],
  );
  const target_score = now.current_total + 60;
  const aimed = await plan('improving', { days, answers_per_day: 0, target_score });
  const needed = aimed.needed_answers_per_day;
  assert.ok(needed > 0);
  const { target_date, ...goal } = aimed.goal_tracking;
  assert.deepEqual([aimed.needed_within_days, target_date, goal.target_score], [days, null, target_score]);
  const totalWith = async (answers_per_day: number) =>
    (await plan('improving', { days, answers_per_day })).predicted_total_in_120_days;
  assert.ok((await totalWith(needed)) >= target_score);
  assert.ok((await totalWith(needed - 1)) < target_score);
  const idle = await plan('improving', { days, answers_per_day: 0, target_score: await totalWith(0) });
  assert.equal(idle.needed_answers_per_day, 0);
});

test('A practice plan defaults to 30 days, and a goal with a date sets the days to reach it', async () => {
  const { current_total } = await predict('improving');
  await put('goals/improving', { target_score: current_total + 50, target_date: dateIn(200) });
  const skills = ['math-0', 'math-1'];
  const data = await plan('improving', { answers_per_day: 5, skills });
  assert.deepEqual(data.plan, { answers_per_day: 5, skills, days: 30 });
  const { needed_within_days, needed_answers_per_day } = await plan('improving', { answers_per_day: 5 });
  assert.equal(needed_within_days, 200);
  const reached = await plan('improving', { answers_per_day: needed_answers_per_day, days: 200 });
  assert.equal(reached.goal_tracking.on_track, true);
});

const invalidBodies: Readonly<Record<string, readonly object[]>> = {
  predictions: [
    ...[{}, { user_ids: [] }, { user_ids: 'active' }, { user_ids: [''] }, { user_ids: ['active', 3] }],
    ...[{ user_ids: Array(501).fill('active') }, { user_ids: ['active'], days: 0 }],
    { user_ids: ['active'], confidence_level: 1 },
  ],
  'predictions/active/what-if': [
    ...[{}, { answers_per_day: -1 }, { answers_per_day: 1001 }, { answers_per_day: '5' }],
    ...[{ skills: [] }, { skills: ['math-0', 'math-0'] }, { days: 366 }, { target_score: 1605 }].map(
      (change) => ({ answers_per_day: 5, ...change }),
    ),
  ],
};

for (const [path, bodies] of Object.entries(invalidBodies))
  test(`POST ${path} rejects invalid bodies with 400`, async () => {
    for (const body of bodies)
      assert.equal(
        outcomeOf(await post(path, body)),
        '400 INVALID_REQUEST',
        JSON.stringify(body).slice(0, 80),
      );
  });

test('A practice plan returns 404 for an unknown skill, naming it, and for an unknown learner', async () => {
  const skills = ['math-0', 'juggling'];
  const unknownSkill = await post('predictions/active/what-if', { answers_per_day: 5, skills });
  assert.equal(outcomeOf(unknownSkill), '404 SKILL_NOT_FOUND');
  const details = [{ path: 'skills', message: 'unknown skill_id juggling' }];
  assert.deepEqual(unknownSkill.json.error.details, details);
  const unknownUser = await post('predictions/nobody/what-if', { answers_per_day: 5 });
  assert.equal(outcomeOf(unknownUser), '404 USER_NOT_FOUND');
});
