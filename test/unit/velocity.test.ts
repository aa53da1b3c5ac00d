import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs } from '../../src/domain/base/common.js';
import { buildCatalogue, emptyCatalogue, type SkillEntry } from '../../src/domain/catalogue/catalogue.js';
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

const today = 20_000;
const now = today * dayMs + 15 * 3_600_000;

const near = (actual: number | null | undefined, expected: number, tolerance = rounding): void =>
  assert.ok(Math.abs((actual ?? Number.NaN) - expected) <= tolerance, `${actual} instead of ${expected}`);

/** A skill's day with answers at noon. */
const skillDay = (day: number, mastery: number, change: Partial<SkillDay> = {}): SkillDay => ({
  skillId: 'algebra',
  day,
  attempts: 5,
  correct: 4,
  correctDays: 1,
  mastery,
  lastAttemptAt: day * dayMs + dayMs / 2,
  ...change,
});

function seriesOf(rows: readonly SkillDay[], model: TenantModel = unfittedModel, from = today - 27) {
  const steps = buildClosingSeries(rows, model, from, now);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

const points = fc
  .uniqueArray(fc.integer({ min: 0, max: 400 }), { minLength: 5, maxLength: 60, size: 'max' })
  .chain((times) => fc.tuple(...times.map((time) => between(0, 1).map((value) => ({ time, value })))));

test('a slope needs five points', () => {
  const line = [0, 1, 2, 3, 4].map((time) => ({ time, value: time / 4 }));
  assert.equal(computeTheilSen(line.slice(1)), null);
  assert.deepEqual(computeTheilSen(line), { slope: 0.25, low: 0.25, high: 0.25 });
});

test('the slope of a line is its own, whatever one odd day says', () => {
  fc.assert(
    fc.property(points, between(-1, 1), between(0, 1), (list, slope, offset) => {
      const line = list.map(({ time }) => ({ time, value: offset + slope * time }));
      const found = computeTheilSen(line);
      for (const value of Object.values(found ?? {})) near(value, slope, 1e-9);
      const odd = line.map((point, i) => (i === 0 ? { ...point, value: 1e6 } : point));
      if (line.length > 5) near(computeTheilSen(odd)?.slope, slope, 1e-9);
    }),
  );
});

test('low <= slope <= high; neither order nor a shift in time or value matters; values turned turn all', () => {
  fc.assert(
    fc.property(
      points,
      fc.integer({ min: -1000, max: 1000 }),
      fc.integer({ min: -8, max: 8 }),
      (list, days, up) => {
        const found = computeTheilSen(list);
        assert.ok(found && found.low <= found.slope && found.slope <= found.high);
        near(computeTheilSen(list.toReversed())?.slope, found.slope);
        const shifted = computeTheilSen(
          list.map(({ time, value }) => ({ time: time + days, value: value + up })),
        );
        near(shifted?.slope, found.slope, 1e-9);
        near(shifted?.low, found.low, 1e-9);
        near(shifted?.high, found.high, 1e-9);
        near(computeTheilSen(list.map(({ time, value }) => ({ time, value: -value })))?.slope, -found.slope);
      },
    ),
  );
});

test('windows: today and the days before it', () => {
  assert.equal(computeFirstDay(7, today), today - 6);
  assert.deepEqual([7, 28, 29, 365].map(computeReadDays), [28, 28, 29, 365]);
  const series = seriesOf(
    [today - 28, today - 27, today - 7, today - 6, today].map((day) => skillDay(day, 0.5)),
  );
  const daysOver = (days: number) =>
    computeProgress(series, days, today).series.map(({ day }) => today - day);
  assert.deepEqual(daysOver(28), [27, 7, 6, 0]);
  assert.deepEqual(daysOver(8), [7, 6, 0]);
  assert.deepEqual(daysOver(7), [6, 0]);
});

test('counts, practice and accuracy of a window', () => {
  const rows = [
    skillDay(today - 8, 0.5, { attempts: 40, correct: 40 }),
    skillDay(today - 1, 0.5, { attempts: 3, correct: 1 }),
    skillDay(today - 1, 0.5, { skillId: 'geometry', attempts: 4, correct: 4 }),
    skillDay(today, 0.5, { attempts: 7, correct: 2 }),
  ];
  const week = computeProgress(seriesOf(rows), 7, today);
  assert.equal(week.answersPerDay, 2);
  assert.equal(week.accuracy, 0.5);
  assert.deepEqual(
    week.series.map(({ day, attempts, correct }) => [today - day, attempts, correct]),
    [
      [1, 7, 5],
      [0, 7, 2],
    ],
  );
  const idle = computeProgress(seriesOf(rows.slice(0, 1)), 7, today);
  assert.deepEqual(idle, { series: [], velocity: null, answersPerDay: 0, accuracy: null });
});

test('a skill counts from its fifth answer on, those before the window among them', () => {
  const few = { attempts: 2, correct: 1 };
  const rows = [today - 4, today - 3, today - 2].map((day) => skillDay(day, 0.6, few));
  const mastery = (list: readonly SkillDay[]) => seriesOf(list).map((day) => day.mastery);
  assert.deepEqual(
    mastery(rows).map((value) => value === null),
    [true, true, false],
  );
  const before = skillDay(today - 28, 0.9, { attempts: 1, lastAttemptAt: (today - 90) * dayMs });
  assert.deepEqual(
    mastery([...rows, before]).map((value) => value === null),
    [true, false, false],
  );
});

test('what was not practised is carried forward, less what was forgotten', () => {
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
  const entry: SkillEntry = {
    name: null,
    section: 'math',
    weight: 3,
    parameters: null,
    revision: 1,
    updatedAt: 0,
  };
  const weighted = { ...unfittedModel, catalogue: buildCatalogue(1, new Map([['geometry', entry]])) };
  near(seriesOf(rows, weighted)[0]?.mastery, (faded + 3 * 0.4) / 4);
});

test('days with a right answer slow forgetting from the day on which they were', () => {
  const practised = [0, 1, 2, 3].map((i) => skillDay(today - 27 + i, 0.9));
  const other = skillDay(today - 4, 0.3, { skillId: 'geometry' });
  const crammed = practised.slice(3).map((row) => ({ ...row, attempts: 20, correct: 16 }));
  const last = (rows: readonly SkillDay[]) => seriesOf([...rows, other]).at(-1)?.mastery ?? 0;
  assert.ok(last(practised) > last(crammed));
});

test('today closes now, not in the future', () => {
  const rows = [
    skillDay(today - 1, 0.9, { lastAttemptAt: now - dayMs }),
    skillDay(today, 0.5, { skillId: 'geometry', lastAttemptAt: now - 1 }),
  ];
  assert.equal(seriesOf(rows).at(-1)?.mastery, 0.7);
});

const anyRows = fc
  .uniqueArray(fc.tuple(fc.integer({ min: today - 28, max: today }), fc.constantFrom('a', 'b', 'c')), {
    selector: ([day, skillId]) => `${day} ${skillId}`,
    maxLength: 60,
    size: 'max',
  })
  .chain((keys) =>
    fc.tuple(
      ...keys.map(([day, skillId]) =>
        fc
          .tuple(between(0, 1), fc.integer({ min: 1, max: 9 }), fc.nat(9))
          .map(([mastery, attempts, right]) => {
            const correct = Math.min(attempts, right);
            return skillDay(day, mastery, { skillId, attempts, correct, correctDays: Math.min(1, correct) });
          }),
      ),
    ),
  );

test('the order of rows does not matter; closings lie within the masteries', () => {
  fc.assert(
    fc.property(anyRows, fc.integer(), (rows, seed) => {
      const series = seriesOf(rows);
      const shuffled = rows.toSorted((a, b) => hash(a, seed) - hash(b, seed));
      for (const [i, closing] of seriesOf(shuffled).entries()) {
        assert.deepEqual({ ...closing, mastery: 0 }, { ...series[i], mastery: 0 });
        if (closing.mastery !== null) near(closing.mastery, series[i]?.mastery ?? Number.NaN);
      }
      for (const { day, mastery, attempts, correct } of series) {
        assert.ok(day >= today - 27 && day <= today && attempts > 0 && correct <= attempts);
        if (mastery !== null) assert.ok(mastery >= 0 && mastery <= 1 + rounding);
      }
    }),
  );
});

const hash = ({ day, skillId }: SkillDay, seed: number): number =>
  Math.imul(day * 31 + skillId.charCodeAt(0) + seed, 0x9e3779b1) >>> 0;

test('steady progress on one skill has its velocity', () => {
  const rows = Array.from({ length: 10 }, (_, i) => skillDay(today - 18 + 2 * i, 0.4 + 0.02 * i));
  // Half days of forgetting do not count: every day closes within the grace of its last answer.
  const { velocity } = computeProgress(seriesOf(rows), 28, today);
  near(velocity?.slope, 0.01);
  near(velocity?.low, 0.01);
  near(velocity?.high, 0.01);
  assert.equal(computeProgress(seriesOf(rows), 7, today).velocity, null, 'four days are too few');
});

const skill = (change: Partial<SkillState>): SkillState => ({ ...newSkill(defaultParameters), ...change });
const skillsOf = (...states: SkillState[]) => new Map(states.map((state, i) => [`skill-${i}`, state]));
const activeOn = (day: number, momentum: MomentumState = newMomentum) => ({
  activity: { ...newActivity, day },
  momentum,
});
const risen: MomentumState = { day: today - 9, short: 0.5, long: 0.4 };

test('momentum now: the last day with answers is closed, then the idle days up to today', () => {
  const state = skill({
    mastery: 0.9,
    attempts: 9,
    correctDays: 1,
    lastAttemptAt: (today - 5) * dayMs + dayMs / 2,
  });
  const at = (time: number) => computeEffectiveMastery(defaultParameters.pInit, state, time);
  let closed = closeDay(risen, today - 5, 0.9);
  for (const ago of [4, 3, 2, 1]) closed = closeDay(closed, today - ago, at((today - ago + 1) * dayMs));
  closed = closeDay(closed, today, at(now));
  const found = computeCurrentMomentum(activeOn(today - 5, risen), skillsOf(state), unfittedModel, now);
  near(found?.value, computeMomentum(closed)?.value ?? Number.NaN);
  assert.equal(found?.label, 'building');
});

test('momentum now: a learner who practised today, on a first day, with too few answers, long ago', () => {
  const model = { ...unfittedModel, catalogue: emptyCatalogue };
  const fresh = skill({ mastery: 0.9, attempts: 5, lastAttemptAt: now - 1000 });
  const learner = activeOn(today, risen);
  near(
    computeCurrentMomentum(learner, skillsOf(fresh), model, now)?.value,
    computeMomentum(closeDay(risen, today, 0.9))?.value ?? 0,
  );
  assert.deepEqual(computeCurrentMomentum(activeOn(today), skillsOf(fresh), model, now), {
    value: 0,
    label: 'steady',
  });
  assert.equal(computeCurrentMomentum(learner, skillsOf({ ...fresh, attempts: 4 }), model, now), null);
  const idle = skill({ mastery: 0.9, attempts: 50, correctDays: 3, lastAttemptAt: (today - 40) * dayMs });
  const before = { day: today - 41, short: 0.85, long: 0.8 };
  const lately = computeCurrentMomentum(activeOn(today - 40, before), skillsOf(idle), model, now);
  assert.equal(lately?.label, 'fading');
  const oneWeek = { day: today - 41, short: 0.6, long: 0.4 };
  const fading = { ...idle, correctDays: 1 };
  assert.equal(
    computeCurrentMomentum(activeOn(today - 40, oneWeek), skillsOf(fading), model, now)?.label,
    'fading',
  );
  const kept = skill({ mastery: 0.3, attempts: 50, lastAttemptAt: (today - 20) * dayMs });
  const rising = { day: today - 21, short: 0.2, long: 0.02 };
  assert.equal(
    computeCurrentMomentum(activeOn(today - 20, rising), skillsOf(kept), model, now)?.label,
    'steady',
  );
});

test('momentum now: an answer of a clock that is ahead of midnight', () => {
  const state = skill({ mastery: 0.9, attempts: 5, lastAttemptAt: now });
  const found = computeCurrentMomentum(activeOn(today + 1, risen), skillsOf(state), unfittedModel, now);
  near(found?.value, computeMomentum(closeDay(risen, today + 1, 0.9))?.value ?? 0);
});

test('steps of any size in a constant series leave no momentum', () => {
  fc.assert(
    fc.property(upTo(40, fc.integer({ min: 1, max: 60 })), between(0, 1), (gaps, value) => {
      let state = newMomentum;
      let day = 0;
      for (const gap of [0, ...gaps]) {
        day += gap;
        state = closeDay(state, day, value);
      }
      near(computeMomentum(state)?.value, 0);
    }),
  );
});
