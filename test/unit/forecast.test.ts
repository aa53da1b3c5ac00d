/** What every forecast promises, for learners of any habit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, type PerSection, type Section, toDay } from '../../src/domain/base/common.js';
import { buildCatalogue, type SkillEntry } from '../../src/domain/catalogue/catalogue.js';
import {
  type ParameterSource,
  resolveSkillModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import type { SkillView } from '../../src/domain/learner/skill-view.js';
import { assessLearner, type ForecastSubject } from '../../src/domain/score/assessment.js';
import {
  createForecast,
  type Forecast,
  forecastLearner,
  forecastPlan,
  maxAnswersPerDay,
} from '../../src/domain/score/learner-forecast.js';
import {
  buildHabit,
  buildSteadyHabit,
  estimateCurrentPractice,
  projectAbilityChanges,
} from '../../src/domain/score/mastery-projection.js';
import { computeScores } from '../../src/domain/score/scores.js';
import {
  type Activity,
  computePractice,
  countActivity,
  newActivity,
} from '../../src/domain/tracing/activity.js';
import { computeRetention } from '../../src/domain/tracing/bkt.js';
import { newLearner, newSkill, type SkillState } from '../../src/domain/tracing/learner-states.js';

const now = Date.UTC(2026, 5, 1, 15);
const within = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const sectionOf = fc.constantFrom<Section | null>('math', 'rw', null);

const skillOf = fc.record({
  section: sectionOf,
  weight: within(0.01, 100),
  mastery: within(0.001, 0.999),
  pInit: within(0.02, 0.9),
  pLearn: within(0.005, 0.9),
  idleDays: within(-0.003, 800),
  correctDays: fc.integer({ min: 0, max: 30 }),
  plateauRun: fc.constantFrom(0, 3),
  right: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 300 })),
  wrong: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 300 })),
  source: fc.constantFrom<ParameterSource>('default', 'prior', 'fitted', 'manual'),
});

const subjects: fc.Arbitrary<ForecastSubject> = fc
  .record({
    skills: fc.array(skillOf, { maxLength: 12 }),
    theta: fc.tuple(within(-4, 4), within(-4, 4)),
    days: fc.array(
      fc.record({
        ago: fc.integer({ min: -1, max: 20 }),
        math: fc.constantFrom(0, 0.5, 1),
        times: fc.integer({ min: 1, max: 30 }),
      }),
      { maxLength: 10 },
    ),
    baselineTotal: fc.option(fc.integer({ min: 40, max: 160 }).map((tens) => 10 * tens)),
    others: fc.integer({ min: 0, max: 30 }),
  })
  .map(({ skills, theta, days, baselineTotal, others }) => ({
    learner: {
      ...newLearner,
      attempts: 100,
      abilities: { ...newLearner.abilities, math: theta[0], rw: theta[1] },
      baselineTotal,
      activity: practisedOn(days),
    },
    views: skills.map(viewOf),
    model: {
      ...unfittedModel,
      catalogue: buildCatalogue(1, new Map(skills.map((skill, i) => [`skill ${i}`, entryOf(skill)]))),
    },
    registeredSkills: skills.length + others,
    now,
  }));

function practisedOn(days: readonly { ago: number; math: number; times: number }[]): Activity {
  let activity = newActivity;
  for (const { ago, math, times } of days) {
    for (let i = 0; i < times; i++)
      activity = countActivity(activity, toDay(now) - ago, { math, rw: 1 - math });
  }
  return activity;
}

type Skill = typeof skillOf extends fc.Arbitrary<infer Value> ? Value : never;

const entryOf = ({ section, weight }: Skill): SkillEntry => ({
  name: null,
  section,
  weight,
  parameters: null,
  revision: 1,
  updatedAt: 0,
});

function viewOf(skill: Skill, i: number): SkillView {
  const { section, weight, mastery, pInit, pLearn, source } = skill;
  const state = stateOf(skill);
  return {
    skillId: `skill ${i}`,
    state,
    model: {
      ...resolveSkillModel(unfittedModel, ''),
      parameters: { ...defaultParameters, pInit, pLearn },
      source,
    },
    placement: { section, weight },
    mastery,
    retention: computeRetention(state, now),
  };
}

function stateOf({ right, wrong, idleDays, correctDays, plateauRun }: Skill): SkillState {
  const state = newSkill(defaultParameters);
  return {
    ...state,
    attempts: Math.max(1, right + wrong),
    correct: right,
    correctDays,
    lastAttemptAt: now - idleDays * dayMs,
    plateau: { ...state.plateau, run: plateauRun },
  };
}

const horizons = fc.integer({ min: 1, max: 365 });
const levels = within(0.5, 0.99);

const forecastOf = (subject: ForecastSubject): Forecast => {
  const standing = assessLearner(subject);
  return createForecast(standing, buildHabit(standing, estimateCurrentPractice(subject)));
};

test('totals add up, intervals hold their score, all in tens and in bounds', () => {
  fc.assert(
    fc.property(subjects, horizons, levels, (subject, days, level) => {
      const { scores, intervals, sd } = forecastOf(subject).forecastIn(days, level);
      assert.equal(scores.total, scores.math + scores.rw);
      const bounds = { math: [200, 800], rw: [200, 800], total: [400, 1600] } as const;
      for (const part of ['math', 'rw', 'total'] as const) {
        const { low, high } = intervals[part];
        assert.ok(low <= scores[part] && scores[part] <= high);
        assert.ok(low >= bounds[part][0] && high <= bounds[part][1]);
        for (const score of [low, high, scores[part]]) assert.equal(score % 10, 0);
      }
      assert.ok(intervals.total.low >= intervals.math.low + intervals.rw.low);
      assert.ok(intervals.total.high <= intervals.math.high + intervals.rw.high);
      assert.ok(sd.math >= 30 && sd.rw >= 30);
    }),
  );
});

test('a wider level gives no narrower interval', () => {
  fc.assert(
    fc.property(subjects, horizons, levels, levels, (subject, days, a, b) => {
      const forecast = forecastOf(subject);
      const [narrow, wide] = [Math.min(a, b), Math.max(a, b)].map((level) =>
        forecast.forecastIn(days, level),
      );
      for (const part of ['math', 'rw', 'total'] as const) {
        const [inner, outer] = [narrow, wide].map((each) => each?.intervals[part]);
        assert.ok(inner && outer && outer.low <= inner.low && inner.high <= outer.high);
      }
    }),
  );
});

test('a forecast further ahead is never more certain', () => {
  fc.assert(
    fc.property(subjects, horizons, horizons, (subject, a, b) => {
      const forecast = forecastOf(subject);
      const near = forecast.forecastIn(Math.min(a, b), 0.8);
      const far = forecast.forecastIn(Math.max(a, b), 0.8);
      assert.ok(far.sd.math >= near.sd.math && far.sd.rw >= near.sd.rw && far.totalSd >= near.totalSd);
    }),
  );
});

test('raising any mastery never lowers the current score', () => {
  fc.assert(
    fc.property(subjects, fc.nat(), within(0, 1), (subject, place, share) => {
      const index = subject.views.length === 0 ? 0 : place % subject.views.length;
      const views = subject.views.map((view, i) =>
        i === index ? { ...view, mastery: view.mastery + share * (0.999 - view.mastery) } : view,
      );
      const before = computeScores(assessLearner(subject).estimate.theta);
      const after = computeScores(assessLearner({ ...subject, views }).estimate.theta);
      for (const part of ['math', 'rw', 'total'] as const) assert.ok(after[part] >= before[part]);
    }),
  );
});

test('days_to_goal is the first day whose forecast meets the target', () => {
  fc.assert(
    fc.property(subjects, fc.integer({ min: 40, max: 160 }), (subject, tens) => {
      const forecast = forecastOf(subject);
      let first: number | null = null;
      for (let day = 0; day <= 365 && first === null; day++) {
        if (forecast.scoresIn(day).total >= 10 * tens) first = day;
      }
      assert.equal(forecast.daysTo(10 * tens), first);
      if (first !== null) assert.ok(forecast.forecastIn(first, 0.8).scores.total >= 10 * tens);
    }),
  );
});

test('a goal is tracked as the forecast says', () => {
  const goals = fc.record({
    targetScore: fc.integer({ min: 40, max: 160 }).map((tens) => 10 * tens),
    left: fc.option(fc.integer({ min: -10, max: 700 })),
  });
  fc.assert(
    fc.property(subjects, horizons, goals, (subject, days, { targetScore, left }) => {
      const targetDate = left === null ? null : new Date(now + left * dayMs).toISOString().slice(0, 10);
      const { current, goal, neededRate } = forecastLearner(subject, {
        days,
        level: 0.8,
        goal: { targetScore, targetDate },
      });
      assert.equal(goal.progressPercent === 100, current.total >= targetScore);
      assert.ok(goal.progressPercent >= 0 && goal.probability >= 0 && goal.probability <= 1);
      const at = Math.min(365, Math.max(0, left ?? 365));
      const inTime = forecastOf(subject).forecastIn(at, 0.8).scores.total;
      const isReached = goal.daysToGoal !== null && goal.daysToGoal <= at;
      assert.equal(goal.onTrack, isReached && inTime >= targetScore);
      if (current.total >= targetScore) assert.equal(goal.daysToGoal, 0);
      if (goal.onTrack) assert.equal(neededRate, null);
    }),
  );
});

test('more practice never lowers a forecast, and the needed rate is the least that reaches the goal', () => {
  const plans = fc.record({ answersPerDay: within(0, 60), chosen: fc.option(fc.nat({ max: 11 })) });
  fc.assert(
    fc.property(
      subjects,
      horizons,
      plans,
      fc.integer({ min: 40, max: 160 }),
      (subject, days, { answersPerDay, chosen }, tens) => {
        const view = chosen === null ? undefined : subject.views[chosen];
        const skills = view === undefined ? null : [view];
        const request = { days, level: 0.8, goal: { targetScore: 10 * tens, targetDate: null } };
        const under = (rate: number) => forecastPlan(subject, { answersPerDay: rate, skills }, request, days);
        const totalWith = (rate: number): number => under(rate).planned.scores.total;
        const isReached = (rate: number): boolean => totalWith(rate) >= 10 * tens;
        assert.ok(totalWith(answersPerDay + 1) >= totalWith(answersPerDay));
        const { neededAnswersPerDay: needed } = under(answersPerDay);
        if (needed === null) assert.equal(isReached(maxAnswersPerDay), false);
        else {
          assert.ok(isReached(needed));
          if (needed > 0) assert.equal(isReached(needed - 1), false);
        }
      },
    ),
    { numRuns: 50 },
  );
});

test('a plan moves a section that was never practised too', () => {
  fc.assert(
    fc.property(subjects, (subject) => {
      const views = subject.views.filter(({ placement }) => placement.section === 'math');
      const standing = assessLearner({ ...subject, views });
      const habit = buildSteadyHabit(standing, { math: 0, rw: 20 });
      assert.ok(projectAbilityChanges(standing, habit)(100, 100).rw > 0);
    }),
  );
});

test('practice is counted by section over 14 days, late answers on their day, future ones as today', () => {
  const today = toDay(now);
  const whole: PerSection<number> = { math: 1, rw: 0 };
  let activity = newActivity;
  for (const day of [today - 13, today - 14, today - 2, today - 20, today, today])
    activity = countActivity(activity, day, whole);
  activity = countActivity(activity, today, { math: 0.5, rw: 0.5 });
  assert.deepEqual(computePractice(activity, today).math, { rate: 4.5 / 14, activeDays: 3 });
  assert.deepEqual(computePractice(activity, today).rw, { rate: 0.5 / 14, activeDays: 1 });
  assert.deepEqual(computePractice(activity, today + 1).math, { rate: 3.5 / 14, activeDays: 2 });
  assert.deepEqual(computePractice(activity, today - 1), computePractice(activity, today));
  assert.deepEqual(computePractice(activity, today + 14).math, { rate: 0, activeDays: 0 });
});

test('steady practice of nothing is idleness', () => {
  fc.assert(
    fc.property(subjects, horizons, (subject, days) => {
      const idle = { ...subject, learner: { ...subject.learner, activity: newActivity } };
      const standing = assessLearner(subject);
      const none = createForecast(standing, buildSteadyHabit(standing, { math: 0, rw: 0 }));
      assert.deepEqual(none.scoresIn(days), forecastOf(idle).scoresIn(days));
    }),
  );
});
