/** Velocity, closing series and momentum. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { getCalendar, utc } from '../../src/domain/base/calendar.js';
import { dayMs } from '../../src/domain/base/common.js';
import { type TenantModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import {
  buildClosingSeries,
  computeCurrentMomentum,
  computeFirstDay,
  computeProgress,
  computeReadDays,
  computeTheilSen,
  type SkillDay,
} from '../../src/domain/learner/velocity.js';
import { newActivity } from '../../src/domain/tracing/activity.js';
import { computeEffectiveMastery } from '../../src/domain/tracing/bkt.js';
import { newSkill, type SkillState } from '../../src/domain/tracing/learner-states.js';
import {
  closeDay,
  computeMomentum,
  type MomentumState,
  newMomentum,
} from '../../src/domain/tracing/momentum.js';
import { between, rounding, upTo } from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';
import { modelWith } from '../support/builders/study.js';

const today = 20_000;
const now = today * dayMs + 15 * 3_600_000;

const near = (actual: number | null | undefined, expected: number | null | undefined, tolerance = rounding) =>
  assert.ok(
    Math.abs((actual ?? Number.NaN) - (expected ?? Number.NaN)) <= tolerance,
    `${actual} is not ${expected}`,
  );

/** A skill's day with answers at noon. */
const skillDay = (day: number, mastery: number, change: Partial<SkillDay> = {}): SkillDay => ({
  ...{
    skillId: 'algebra',
    day,
    attempts: 5,
    answers: change.attempts ?? 5,
    correct: 4,
    correctDays: 1,
    mastery,
  },
  lastAttemptAt: day * dayMs + dayMs / 2,
  ...change,
});

function seriesOf(rows: readonly SkillDay[], model: TenantModel = unfittedModel) {
  const steps = buildClosingSeries(rows, model, { calendar: getCalendar(utc), from: today - 27, now });
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

test('computeTheilSen needs five points', () => {
  const line = [0, 1, 2, 3, 4].map((time) => ({ time, value: time / 4 }));
  assert.equal(computeTheilSen(line.slice(1)), null);
  assert.deepEqual(computeTheilSen(line), { slope: 0.25, low: 0.25, high: 0.25 });
});

test('computeProgress uses today and the days before it', () => {
  assert.equal(computeFirstDay(7, today), today - 6);
  assert.deepEqual([7, 28, 29, 365].map(computeReadDays), [28, 28, 29, 365]);
  const days = [today - 28, today - 27, today - 7, today - 6, today];
  const series = seriesOf(days.map((day) => skillDay(day, 0.5)));
  const daysOver = (count: number) =>
    computeProgress(series, count, today).series.map(({ day }) => today - day);
  assert.deepEqual(daysOver(28), [27, 7, 6, 0]);
  assert.deepEqual(daysOver(8), [7, 6, 0]);
  assert.deepEqual(daysOver(7), [6, 0]);
});

test('computeProgress returns answers, accuracy and velocity of its window', () => {
  const rows = [
    skillDay(today - 8, 0.5, { attempts: 40, correct: 40 }),
    skillDay(today - 1, 0.5, { attempts: 3, correct: 1 }),
    // Two of the six answers also count under algebra, their first skill.
    skillDay(today - 1, 0.5, { skillId: 'geometry', attempts: 6, answers: 4, correct: 4 }),
    skillDay(today, 0.5, { attempts: 7, correct: 2 }),
  ];
  const week = computeProgress(seriesOf(rows), 7, today);
  assert.deepEqual([week.answersPerDay, week.accuracy], [2, 0.5]);
  const days = week.series.map(({ day, answers, correct }) => `${today - day} ${answers} ${correct}`);
  assert.deepEqual(days, ['1 7 5', '0 7 2']);
  const idle = computeProgress(seriesOf(rows.slice(0, 1)), 7, today);
  assert.deepEqual(idle, { series: [], velocity: null, answersPerDay: 0, accuracy: null });
  const steady = seriesOf(Array.from({ length: 10 }, (_, i) => skillDay(today - 18 + 2 * i, 0.4 + 0.02 * i)));
  const { velocity } = computeProgress(steady, 28, today);
  for (const value of [velocity?.slope, velocity?.low, velocity?.high]) near(value, 0.01);
  assert.equal(computeProgress(steady, 7, today).velocity, null, 'four days are too few');
});

test('buildClosingSeries includes a skill from its fifth answer on, also if these are before the window', () => {
  const few = { attempts: 2, correct: 1 };
  const rows = [today - 4, today - 3, today - 2].map((day) => skillDay(day, 0.6, few));
  const hasMastery = (list: readonly SkillDay[]) => seriesOf(list).map(({ mastery }) => mastery !== null);
  assert.deepEqual(hasMastery(rows), [false, false, true]);
  const before = skillDay(today - 28, 0.9, { attempts: 1, lastAttemptAt: (today - 90) * dayMs });
  assert.deepEqual(hasMastery([...rows, before]), [false, true, true]);
});

test('buildClosingSeries carries skills forward with forgetting, and weights them', () => {
  const rows = [
    skillDay(today - 28, 0.9, { correctDays: 3, lastAttemptAt: (today - 40) * dayMs }),
    skillDay(today - 10, 0.4, { skillId: 'geometry', correctDays: 0 }),
  ];
  const [closing, ...rest] = seriesOf(rows);
  assert.deepEqual(rest, []);
  const old = { mastery: 0.9, attempts: 5, correctDays: 3, lastAttemptAt: (today - 40) * dayMs };
  const faded = computeEffectiveMastery(defaultParameters.pInit, old, (today - 9) * dayMs);
  assert.ok(faded < 0.9);
  near(closing?.mastery, (faded + 0.4) / 2);
  assert.deepEqual(seriesOf(rows.toReversed()), seriesOf(rows));
  const weighted = modelWith({ geometry: { section: 'math', weight: 3 } });
  near(seriesOf(rows, weighted)[0]?.mastery, (faded + 3 * 0.4) / 4);
  const current = [
    skillDay(today - 1, 0.9, { lastAttemptAt: now - dayMs }),
    skillDay(today, 0.5, { skillId: 'geometry', lastAttemptAt: now - 1 }),
  ];
  assert.equal(seriesOf(current).at(-1)?.mastery, 0.7, 'today closes now');
});

test('buildClosingSeries slows forgetting with every day that has a right answer', () => {
  const practised = [0, 1, 2, 3].map((i) => skillDay(today - 27 + i, 0.9));
  const other = skillDay(today - 4, 0.3, { skillId: 'geometry' });
  const crammed = practised.slice(3).map((row) => ({ ...row, attempts: 20, correct: 16 }));
  const last = (rows: readonly SkillDay[]) => seriesOf([...rows, other]).at(-1)?.mastery ?? 0;
  assert.ok(last(practised) > last(crammed));
});

const skill = (change: Partial<SkillState>): SkillState => ({
  ...newSkill(defaultParameters),
  ...{ mastery: 0.9, attempts: 5 },
  ...change,
});
const risen: MomentumState = { day: today - 9, short: 0.5, long: 0.4 };
const momentumOf = (day: number, momentum: MomentumState, state: SkillState) => {
  const learner = { activity: { ...newActivity, day }, momentum, timeZone: utc };
  return computeCurrentMomentum(learner, new Map([['skill', state]]), unfittedModel, now);
};

test('computeCurrentMomentum closes the last day with answers, then every idle day until today', () => {
  const state = skill({ attempts: 9, correctDays: 1, lastAttemptAt: (today - 5) * dayMs + dayMs / 2 });
  const at = (time: number) => computeEffectiveMastery(defaultParameters.pInit, state, time);
  let closed = closeDay(risen, today - 5, 0.9);
  for (const ago of [4, 3, 2, 1]) closed = closeDay(closed, today - ago, at((today - ago + 1) * dayMs));
  closed = closeDay(closed, today, at(now));
  const found = momentumOf(today - 5, risen, state);
  near(found?.value, computeMomentum(closed)?.value);
  assert.equal(found?.label, 'building');
});

test('computeCurrentMomentum closes today once, also if the clock of the client is ahead of midnight', () => {
  const fresh = skill({ lastAttemptAt: now - 1000 });
  for (const day of [today, today + 1])
    near(momentumOf(day, risen, fresh)?.value, computeMomentum(closeDay(risen, day, 0.9))?.value);
  assert.deepEqual(momentumOf(today, newMomentum, fresh), { value: 0, label: 'steady' });
  assert.equal(momentumOf(today, risen, { ...fresh, attempts: 4 }), null, 'four answers are too few');
});

test('computeCurrentMomentum is fading or steady for a learner without recent answers', () => {
  const labelOf = (ago: number, short: number, long: number, change: Partial<SkillState>) => {
    const last = skill({ attempts: 50, lastAttemptAt: (today - ago) * dayMs, ...change });
    return momentumOf(today - ago, { day: today - ago - 1, short, long }, last)?.label;
  };
  assert.equal(labelOf(40, 0.85, 0.8, { correctDays: 3 }), 'fading');
  assert.equal(labelOf(40, 0.6, 0.4, { correctDays: 1 }), 'fading');
  assert.equal(labelOf(20, 0.2, 0.02, { mastery: 0.3 }), 'steady');
});

test('closeDay leaves no momentum in a constant series, whatever its gaps', () => {
  forAll(upTo(40, fc.integer({ min: 1, max: 60 })), between(0, 1), (gaps, value) => {
    let state = closeDay(newMomentum, 0, value);
    let day = 0;
    for (const gap of gaps) {
      day += gap;
      state = closeDay(state, day, value);
    }
    near(computeMomentum(state)?.value, 0);
  });
});
