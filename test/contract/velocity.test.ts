/** Velocity: daily series out of ClickHouse, recent figures out of Redis, and what is told while ClickHouse is away. */
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { computeTheilSen } from '../../src/domain/learner/velocity.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { callerOf, event, type JsonAnswer, jsonOf } from '../support/http/http.js';
import { velocityFromClickHouse } from '../support/inspect/velocity-fields.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { askUntil, waitFor } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);
const dayMs = 86_400_000;

// The answers are spread over days up to today.
beforeEach(awayFromMidnight);

/** Noon of the day that many days ago; of today a moment ago, for noon may not have come. */
const noon = (daysAgo: number): string => {
  const now = Date.now();
  const day = Math.floor(now / dayMs) - daysAgo;
  return new Date(daysAgo === 0 ? now : day * dayMs + dayMs / 2).toISOString();
};

const dateOf = (daysAgo: number): string => noon(daysAgo).slice(0, 10);

interface Practised {
  readonly daysAgo: number;
  /** Answers of the day, 1 where they were right. */
  readonly answers: readonly (0 | 1)[];
  readonly skill?: string;
}

/** Counts answers, in the order given. @returns mastery after the last answer of each entry */
async function practise(user_id: string, list: readonly Practised[], as = caller): Promise<number[]> {
  const events = list.flatMap(({ daysAgo, answers, skill = 'algebra' }) =>
    answers.map((answer) =>
      event({ user_id, skill_id: skill, is_correct: answer === 1, occurred_at: noon(daysAgo) }),
    ),
  );
  const { status, json } = await as.trackAll(events);
  assert.equal(status, 200);
  const results: { data: { mastery_after: number } }[] = json.data.results;
  let last = -1;
  return list.map(({ answers }) => {
    last += answers.length;
    return results[last]?.data.mastery_after as number;
  });
}

const velocity = (user: string, query = '', as = caller): Promise<JsonAnswer> =>
  as.get(`/api/v1/velocity/${user}${query}`);

/** The data once ClickHouse has all answers. */
async function settled(user: string, query = ''): Promise<JsonAnswer['json']> {
  const ask = async () => {
    const { status, json, text } = await velocity(user, query);
    assert.equal(status, 200, text);
    return json.data;
  };
  return askUntil(`all answers of ${user}`, ask, ({ source_lag_seconds: lag }) => lag === 0);
}

const fields = [
  'user_id',
  'skill_id',
  'days',
  'velocity_per_attempt',
  'momentum',
  'momentum_label',
  'plateaus',
  ...velocityFromClickHouse,
  'source_lag_seconds',
];

/** Of one skill, in no more than a day between answers, so that nothing is forgotten. */
const weeks: readonly Practised[] = [
  { daysAgo: 6, answers: [0, 0, 0, 1, 0] },
  { daysAgo: 5, answers: [0, 1] },
  { daysAgo: 4, answers: [1] },
  { daysAgo: 3, answers: [0, 1] },
  { daysAgo: 2, answers: [1, 1] },
  { daysAgo: 1, answers: [1] },
  { daysAgo: 0, answers: [1] },
];

test('a week of practice: the series is what the answers told, the velocity its Theil-Sen slope', async () => {
  const told = await practise('ada', weeks);
  const data = await settled('ada');
  assert.deepEqual(Object.keys(data).sort(), fields.toSorted());
  assert.deepEqual([data.user_id, data.skill_id, data.days], ['ada', null, 28]);
  assert.deepEqual(
    data.series,
    weeks.map(({ daysAgo, answers }, i) => ({
      date: dateOf(daysAgo),
      mastery: told[i],
      attempts: answers.length,
      correct: answers.filter(Boolean).length,
    })),
  );
  const slope = computeTheilSen(told.map((value, time) => ({ time, value })));
  near(data.velocity_per_day, slope?.slope);
  near(data.velocity_per_day_low, slope?.low);
  near(data.velocity_per_day_high, slope?.high);
  near(data.velocity_per_week, 7 * data.velocity_per_day, 1e-9);
  assert.equal(data.velocity_7d, data.velocity_per_day);
  assert.equal(data.acceleration, 0);
  assert.equal(data.active_days, 7);
  assert.equal(data.answers_per_day, 0.5);
  assert.deepEqual([data.accuracy_7d, data.accuracy_28d], [0.5714, 0.5714]);
  assert.equal(data.velocity_per_attempt, null);
  assert.equal(data.momentum_label, 'building');
  assert.ok(data.momentum > 0.01 && data.momentum < 1);
  assert.deepEqual(data.plateaus, []);
});

/** The answers show mastery with four decimals. */
const near = (actual: number, expected: number | undefined, tolerance = 1e-4): void =>
  assert.ok(Math.abs(actual - (expected ?? Number.NaN)) <= tolerance, `${actual} instead of ${expected}`);

test('windows: series and counts over the days asked for, the fixed ones whatever is asked', async () => {
  const earlier = [300, 299, 298, 297, 296, 40].map((daysAgo) => ({ daysAgo, answers: [1, 1] as const }));
  await practise('ben', [...earlier, ...weeks]);
  const year = await settled('ben', '?days=365');
  const month = await settled('ben');
  const week = await settled('ben', '?days=7');
  assert.deepEqual(
    [year, month, week].map(({ active_days, answers_per_day }) => [active_days, answers_per_day]),
    [
      [13, 0.071233],
      [7, 0.5],
      [7, 2],
    ],
  );
  assert.deepEqual(
    year.series.map(({ date }: { date: string }) => date),
    [...earlier, ...weeks].map(({ daysAgo }) => dateOf(daysAgo)),
  );
  assert.deepEqual(month.series, year.series.slice(-7));
  for (const name of ['velocity_7d', 'acceleration', 'accuracy_7d', 'accuracy_28d', 'momentum']) {
    assert.deepEqual([week[name], year[name]], [month[name], month[name]], name);
  }
  near(month.acceleration, month.velocity_7d - month.velocity_per_day, 1e-9);
  assert.notEqual(year.velocity_per_day, month.velocity_per_day);
});

test('one skill: its own series, slope per attempt and plateau', async () => {
  const flat = Array.from({ length: 20 }, (_, i) => (i % 3 === 0 ? 1 : 0));
  await practise('carl', [
    ...weeks,
    { daysAgo: 0, answers: flat, skill: 'geo/metry' },
    { daysAgo: 0, answers: [1, 1], skill: 'two' },
    { daysAgo: 0, answers: [1, 1, 1], skill: 'three' },
  ]);
  const all = await settled('carl');
  const algebra = await settled('carl', '?skill_id=algebra&days=7');
  const geometry = await settled('carl', '?skill_id=geo%2Fmetry');
  assert.equal(algebra.skill_id, 'algebra');
  assert.equal(algebra.series.at(-1).attempts, 1);
  assert.equal(all.series.at(-1).attempts, 26);
  assert.ok(algebra.velocity_per_attempt > 0 && algebra.velocity_per_attempt < 1);
  assert.deepEqual([all.plateaus, algebra.plateaus, geometry.plateaus], [['geo/metry'], [], ['geo/metry']]);
  assert.deepEqual([algebra.momentum, geometry.momentum], [all.momentum, all.momentum], "the learner's");
  assert.equal((await settled('carl', '?skill_id=two')).velocity_per_attempt, null);
  const three = await settled('carl', '?skill_id=three');
  assert.equal(typeof three.velocity_per_attempt, 'number');
  assert.equal(three.series[0].mastery, null, 'too few answers for a mastery that can be compared');
});

test('a skill without five answers makes no mastery and no momentum', async () => {
  await practise('dora', [{ daysAgo: 0, answers: [1, 1, 0, 1] }]);
  const data = await settled('dora');
  assert.deepEqual(data.series, [{ date: dateOf(0), mastery: null, attempts: 4, correct: 3 }]);
  assert.deepEqual([data.momentum, data.momentum_label, data.velocity_per_day], [null, null, null]);
  assert.deepEqual([data.active_days, data.accuracy_7d], [1, 0.75]);
});

test('a learner of one day has a series and no slope', async () => {
  const [mastery] = await practise('emil', [{ daysAgo: 0, answers: [1, 0, 1, 1, 1] }]);
  const data = await settled('emil');
  assert.deepEqual(data.series, [{ date: dateOf(0), mastery, attempts: 5, correct: 4 }]);
  const slopes = [data.velocity_per_day, data.velocity_per_week, data.velocity_7d, data.acceleration];
  assert.deepEqual(slopes, [null, null, null, null]);
  assert.deepEqual([data.momentum, data.momentum_label], [0, 'steady']);
});

test('a learner who stopped has no series, no accuracy, and momentum that fades', async () => {
  const strong = [70, 65, 60, 55, 50, 45, 40].map((daysAgo) => ({
    daysAgo,
    answers: [1, 1, 1, 1, 1] as const,
  }));
  await practise('fay', strong);
  const data = await settled('fay');
  assert.deepEqual([data.series, data.active_days, data.answers_per_day], [[], 0, 0]);
  assert.deepEqual([data.accuracy_7d, data.accuracy_28d, data.velocity_per_day], [null, null, null]);
  assert.equal(data.momentum_label, 'fading');
  const year = await settled('fay', '?days=365');
  assert.equal(year.active_days, 7);
  assert.equal(typeof year.velocity_per_day, 'number');
});

test('what was forgotten lowers the closings of later days', async () => {
  await practise('gil', [
    { daysAgo: 200, answers: [1, 1, 1, 1, 1], skill: 'old' },
    { daysAgo: 3, answers: [1, 1, 1, 1, 1], skill: 'new' },
    { daysAgo: 0, answers: [1], skill: 'new' },
  ]);
  const both = await settled('gil');
  const alone = await settled('gil', '?skill_id=new');
  const [first] = both.series;
  assert.ok(first.mastery < alone.series[0].mastery && first.mastery > (alone.series[0].mastery + 0.3) / 2);
});

test('an answer up to five minutes ahead counts today', async () => {
  const occurred_at = new Date(Date.now() + 4 * 60_000).toISOString();
  assert.equal((await caller.track(event({ user_id: 'hal', occurred_at }))).status, 200);
  const data = await settled('hal');
  assert.deepEqual([data.active_days, data.series[0].attempts], [1, 1]);
});

const bad = [
  ...['6', '366', '0', '-7', '7.5', 'x', '', '1e2', '28&days=28'].map((days) => `days=${days}`),
  ...['', '%00', 'a&skill_id=b', 'x'.repeat(129), '%ff'].map((id) => `skill_id=${id}`),
];

test('query values', async () => {
  await practise('ida', [{ daysAgo: 0, answers: [1] }]);
  for (const query of bad) {
    const { status, json } = await velocity('ida', `?${query}`);
    assert.deepEqual([status, json.error?.code], [400, 'INVALID_REQUEST'], query);
  }
  for (const query of ['days=7', 'days=365', 'other=&other=', 'skill_id=algebra&days=30']) {
    assert.equal((await velocity('ida', `?${query}`)).status, 200, query);
  }
});

test('unknown learners and skills, other tenants, keys without the scope, other methods', async () => {
  await practise('jo', [{ daysAgo: 0, answers: [1] }]);
  const other = callerOf(service, await keys.add({ tenant: 'other' }));
  const writer = callerOf(service, await keys.add({ scopes: ['write'] }));
  const rows: readonly (readonly [Promise<JsonAnswer>, number, string])[] = [
    [velocity('nobody'), 404, 'USER_NOT_FOUND'],
    [velocity('nobody', '?skill_id=algebra'), 404, 'USER_NOT_FOUND'],
    [velocity('jo', '?skill_id=geometry'), 404, 'SKILL_NOT_FOUND'],
    [velocity('jo', '', other), 404, 'USER_NOT_FOUND'],
    [velocity('jo', '', writer), 403, 'FORBIDDEN'],
    [velocity('jo', '', callerOf(service, null)), 401, 'UNAUTHORIZED'],
    [velocity('%00'), 400, 'INVALID_REQUEST'],
  ];
  for (const [call, status, code] of rows) {
    const { status: got, json, text } = await call;
    assert.deepEqual([got, json.error?.code], [status, code], text);
  }
  const { status, headers } = await caller.raw({ method: 'POST', path: '/api/v1/velocity/jo', body: '{}' });
  assert.deepEqual([status, headers.allow], [405, 'GET, HEAD']);
  await practise('jo', [{ daysAgo: 1, answers: [0, 0] }], other);
  await waitFor('the answers of the other tenant', async () => {
    const { data } = jsonOf(await velocity('jo', '', other));
    return data.source_lag_seconds === 0 && data.series.length === 1 && data.series[0].attempts === 2;
  });
  assert.deepEqual(
    (await settled('jo')).series.map(({ attempts }: { attempts: number }) => attempts),
    [1],
  );
});

test('ids byte for byte', async () => {
  const user = "a/b\\'; -- é%";
  const skill = '😀/ü\\n"%2F';
  await practise(user, [{ daysAgo: 0, answers: [1], skill }]);
  const data = await settled(encodeURIComponent(user), `?skill_id=${encodeURIComponent(skill)}`);
  assert.deepEqual([data.user_id, data.skill_id, data.active_days], [user, skill, 1]);
});
