/** Velocity: daily series from ClickHouse, current values from Redis. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { dayMs } from '../../src/domain/base/common.js';
import { computeTheilSen } from '../../src/domain/learner/velocity.js';
import { awayFromMidnight } from '../support/builders/day.js';
import { callerOf, event, type JsonAnswer, outcomeOf } from '../support/http/http.js';
import { assertNear } from '../support/near.js';
import { sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';
import { askUntil } from '../support/wait.js';

const service = await sharedService();
const caller = callerOf(service, service.key);

/** Noon of an earlier day, or the current time for today, because noon may be in the future. */
function timeOn(daysAgo: number): string {
  const now = Date.now();
  const noon = (Math.floor(now / dayMs) - daysAgo) * dayMs + dayMs / 2;
  return new Date(daysAgo === 0 ? now : noon).toISOString();
}
const dateOf = (daysAgo: number): string => timeOn(daysAgo).slice(0, 10);

interface PractisedDay {
  readonly daysAgo: number;
  /** 1: a correct answer. */
  readonly answers: readonly (0 | 1)[];
  readonly skill?: string;
}

/** @returns mastery after the last answer of each day */
async function practise(user_id: string, days: readonly PractisedDay[]): Promise<number[]> {
  const events = days.flatMap(({ daysAgo, answers, skill = 'algebra' }) =>
    answers.map((answer) =>
      event({ user_id, skill_id: skill, is_correct: answer === 1, occurred_at: timeOn(daysAgo) }),
    ),
  );
  const { status, json } = await caller.trackAll(events);
  assert.equal(status, 200);
  let last = -1;
  return days.map(({ answers }) => {
    last += answers.length;
    return json.data.results[last].data.mastery_after;
  });
}

const getVelocity = (user: string, query = ''): Promise<JsonAnswer> =>
  caller.get(`/api/v1/velocity/${encodeURIComponent(user)}${query}`);

/** The data once ClickHouse has all answers. */
async function getStored(user: string, query = ''): Promise<JsonAnswer['json']> {
  const get = async () => {
    const { status, json, text } = await getVelocity(user, query);
    assert.equal(status, 200, text);
    return json.data;
  };
  return askUntil(`all answers of ${user}`, get, ({ source_lag_seconds: lag }) => lag === 0);
}

/** At most one day between answers, so that no mastery decays. */
const week: readonly PractisedDay[] = [
  { daysAgo: 6, answers: [0, 0, 0, 1, 0] },
  { daysAgo: 5, answers: [0, 1] },
  { daysAgo: 4, answers: [1] },
  { daysAgo: 3, answers: [0, 1] },
  { daysAgo: 2, answers: [1, 1] },
  { daysAgo: 1, answers: [1] },
  { daysAgo: 0, answers: [1] },
];
const olderDays = [300, 299, 298, 297, 296, 40].map((daysAgo) => ({ daysAgo, answers: [1, 1] as const }));

beforeEach(awayFromMidnight);

test('Velocity returns the daily closing mastery and its Theil-Sen slope', async () => {
  const closings = await practise('ada', week);
  const data = await getStored('ada');
  const { velocity_per_day: slope, velocity_per_day_low: low, velocity_per_day_high: high } = data;
  const line = computeTheilSen(closings.map((value, time) => ({ time, value })));
  // Answers show mastery with four decimals.
  assertNear(slope, line?.slope, 1e-4);
  assertNear(low, line?.low, 1e-4);
  assertNear(high, line?.high, 1e-4);
  assertNear(data.velocity_per_week, 7 * slope, 1e-9);
  const { momentum, source_lag_seconds: _, ...exact } = data;
  assert.ok(momentum > 0.01 && momentum < 1);
  assert.deepEqual(exact, {
    ...{ user_id: 'ada', skill_id: null, days: 28, velocity_per_attempt: null },
    ...{ momentum_label: 'building', plateaus: [] },
    ...{ velocity_per_day: slope, velocity_per_day_low: low, velocity_per_day_high: high },
    ...{ velocity_per_week: data.velocity_per_week, velocity_7d: slope, acceleration: 0 },
    ...{ answers_per_day: 0.5, active_days: 7, accuracy_7d: 0.5714, accuracy_28d: 0.5714 },
    series: week.map(({ daysAgo, answers }, i) => ({
      date: dateOf(daysAgo),
      mastery: closings[i],
      attempts: answers.length,
      correct: answers.filter(Boolean).length,
    })),
  });
});

test('Velocity applies days to series and counts, and not to the fixed 7- and 28-day fields', async () => {
  await practise('ben', [...olderDays, ...week]);
  const year = await getStored('ben', '?days=365');
  const month = await getStored('ben');
  const sevenDays = await getStored('ben', '?days=7');
  const counts = [year, month, sevenDays].map((one) => `${one.active_days} ${one.answers_per_day}`);
  assert.deepEqual(counts, ['13 0.071233', '7 0.5', '7 2']);
  const dates = [...olderDays, ...week].map(({ daysAgo }) => dateOf(daysAgo));
  assert.deepEqual(valuesOf(year.series, 'date'), dates);
  assert.deepEqual(month.series, year.series.slice(-7));
  for (const name of ['velocity_7d', 'acceleration', 'accuracy_7d', 'accuracy_28d', 'momentum'])
    assert.deepEqual([sevenDays[name], year[name]], [month[name], month[name]], name);
  assertNear(month.acceleration, month.velocity_7d - month.velocity_per_day, 1e-9);
  assert.notEqual(year.velocity_per_day, month.velocity_per_day);
});

test("Velocity of one skill has the skill's own series, slope and plateau", async () => {
  const flat = Array.from({ length: 20 }, (_, i) => (i % 3 === 0 ? 1 : 0));
  await practise('carl', [
    ...week,
    { daysAgo: 0, answers: flat, skill: 'geo/metry' },
    { daysAgo: 0, answers: [1, 1], skill: 'two' },
    { daysAgo: 0, answers: [1, 1, 1], skill: 'three' },
  ]);
  const all = await getStored('carl');
  const algebra = await getStored('carl', '?skill_id=algebra&days=7');
  const geometry = await getStored('carl', '?skill_id=geo%2Fmetry');
  assert.deepEqual(
    [algebra.skill_id, algebra.series.at(-1).attempts, all.series.at(-1).attempts],
    ['algebra', 1, 26],
  );
  assert.ok(algebra.velocity_per_attempt > 0 && algebra.velocity_per_attempt < 1);
  assert.deepEqual([all.plateaus, algebra.plateaus, geometry.plateaus], [['geo/metry'], [], ['geo/metry']]);
  assert.deepEqual([algebra.momentum, geometry.momentum], [all.momentum, all.momentum]);
  assert.equal((await getStored('carl', '?skill_id=two')).velocity_per_attempt, null);
  const three = await getStored('carl', '?skill_id=three');
  assert.equal(typeof three.velocity_per_attempt, 'number');
  assert.equal(three.series[0].mastery, null, 'mastery needs five answers');
});

test('Velocity returns null for values that need more answers or more days', async () => {
  await practise('dora', [{ daysAgo: 0, answers: [1, 1, 0, 1] }]);
  const four = await getStored('dora');
  assert.deepEqual(four.series, [{ date: dateOf(0), mastery: null, attempts: 4, correct: 3 }]);
  assert.deepEqual([four.momentum, four.momentum_label, four.velocity_per_day], [null, null, null]);
  assert.deepEqual([four.active_days, four.accuracy_7d], [1, 0.75]);

  const [mastery] = await practise('emil', [{ daysAgo: 0, answers: [1, 0, 1, 1, 1] }]);
  const five = await getStored('emil');
  assert.deepEqual(five.series, [{ date: dateOf(0), mastery, attempts: 5, correct: 4 }]);
  const slopes = [five.velocity_per_day, five.velocity_per_week, five.velocity_7d, five.acceleration];
  assert.deepEqual(slopes, [null, null, null, null]);
  assert.deepEqual([five.momentum, five.momentum_label], [0, 'steady']);
});

test('Velocity of a learner without answers in the period has an empty series and fading momentum', async () => {
  const answers = [1, 1, 1, 1, 1] as const;
  await practise(
    'fay',
    [70, 65, 60, 55, 50, 45, 40].map((daysAgo) => ({ daysAgo, answers })),
  );
  const data = await getStored('fay');
  assert.deepEqual([data.series, data.active_days, data.answers_per_day], [[], 0, 0]);
  assert.deepEqual([data.accuracy_7d, data.accuracy_28d, data.velocity_per_day], [null, null, null]);
  assert.equal(data.momentum_label, 'fading');
  const year = await getStored('fay', '?days=365');
  assert.equal(year.active_days, 7);
  assert.equal(typeof year.velocity_per_day, 'number');
});

test('Velocity finds ids byte for byte and counts an answer from the near future as today', async () => {
  const user = "a/b\\'; -- é%";
  const skill = '😀/ü\\n"%2F';
  const occurred_at = new Date(Date.now() + 4 * 60_000).toISOString();
  assert.equal((await caller.track(event({ user_id: user, skill_id: skill, occurred_at }))).status, 200);
  const data = await getStored(user, `?skill_id=${encodeURIComponent(skill)}`);
  assert.deepEqual(
    [data.user_id, data.skill_id, data.active_days, data.series[0].attempts],
    [user, skill, 1, 1],
  );
});

test('Velocity rejects days outside 7 to 365, invalid skill ids, and unknown learners and skills', async () => {
  const days = ['6', '366', '-7', '7.5'].map((value) => `days=${value}`);
  const skillIds = ['', '%00', 'a&skill_id=b', 'x'.repeat(129)].map((id) => `skill_id=${id}`);
  for (const query of [...days, ...skillIds])
    assert.equal(outcomeOf(await getVelocity('ada', `?${query}`)), '400 INVALID_REQUEST', query);
  for (const query of ['days=7', 'days=365', 'skill_id=algebra&days=30'])
    assert.equal((await getVelocity('ada', `?${query}`)).status, 200, query);
  assert.equal(outcomeOf(await getVelocity('nobody', '?skill_id=algebra')), '404 USER_NOT_FOUND');
  assert.equal(outcomeOf(await getVelocity('ada', '?skill_id=geometry')), '404 SKILL_NOT_FOUND');
});
