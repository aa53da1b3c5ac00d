/** Invariants of current and forecast scores, for learners with any history. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultParameters, forgettingConstants } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, formatDate, type Section, toUtcDay } from '../../src/domain/base/common.js';
import { normalCdf, normalQuantile } from '../../src/domain/base/normal-distribution.js';
import {
  type ParameterSource,
  resolveSkillModel,
  type TenantModel,
  unfittedModel,
} from '../../src/domain/catalogue/tenant-model.js';
import { buildSkillViews } from '../../src/domain/learner/skill-view.js';
import { assessLearner, type ForecastSubject } from '../../src/domain/score/assessment.js';
import {
  createForecast,
  type Forecast,
  forecastLearner,
  forecastPlan,
  maxAnswersPerDay,
} from '../../src/domain/score/learner-forecast.js';
import { createAbilityProjection, projectAbilityChanges } from '../../src/domain/score/mastery-projection.js';
import {
  buildHabit,
  buildSteadyHabit,
  estimateCurrentPractice,
} from '../../src/domain/score/practice-habit.js';
import { computeScores } from '../../src/domain/score/scores.js';
import {
  type Activity,
  computePractice,
  countActivity,
  newActivity,
} from '../../src/domain/tracing/activity.js';
import { newLearner, newSkill, type SkillState } from '../../src/domain/tracing/learner-states.js';
import { indices } from '../../src/lists.js';
import { createLearner } from '../support/builders/answers.js';
import { anyParameters, between, ordered } from '../support/builders/arbitraries.js';
import { fc, forAll, forRuns } from '../support/builders/properties.js';
import { modelWith } from '../support/builders/study.js';

const now = Date.UTC(2026, 5, 1, 15);
const parts = ['math', 'rw', 'total'] as const;
const anySection = fc.constantFrom<Section | null>('math', 'rw', null);
const anySource = fc.constantFrom<ParameterSource>('default', 'prior', 'fitted', 'manual');
const anyCount = fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 300 }));
const anyTotal = fc.integer({ min: 40, max: 160 }).map((tens) => 10 * tens);
const anyDays = fc.integer({ min: 1, max: 365 });
const anyLevel = between(0.5, 0.99);

const anySkillModel = fc.record({
  section: anySection,
  weight: between(0.01, 100),
  source: anySource,
  parameters: anyParameters,
});
type PlacedSkill = typeof anySkillModel extends fc.Arbitrary<infer Value> ? Value : never;

const anySkillState: fc.Arbitrary<SkillState> = fc
  .record({
    mastery: between(0.001, 0.999),
    idleDays: between(-0.003, 800),
    correctDays: fc.integer({ min: 0, max: 30 }),
    run: fc.constantFrom(0, 3),
    right: anyCount,
    wrong: anyCount,
  })
  .map(({ idleDays, run, right, wrong, ...state }) => {
    const attempts = Math.max(1, right + wrong);
    const lastAttemptAt = now - idleDays * dayMs;
    const fresh = newSkill(defaultParameters);
    return {
      ...fresh,
      ...state,
      attempts,
      correct: right,
      lastAttemptAt,
      plateau: { ...fresh.plateau, run },
    };
  });

function modelOf(skills: readonly PlacedSkill[], isPlaced = true): TenantModel {
  const entries = skills.map(({ section, weight }, i) => [`skill ${i}`, { section, weight }] as const);
  const base = resolveSkillModel(unfittedModel, '');
  return {
    ...modelWith(isPlaced ? Object.fromEntries(entries) : {}),
    skills: new Map(
      skills.map(({ parameters, source }, i) => [`skill ${i}`, { ...base, parameters, source }]),
    ),
  };
}

const anyPractice = fc.record({
  ago: fc.integer({ min: -1, max: 20 }),
  math: fc.constantFrom(0, 0.5, 1),
  times: fc.integer({ min: 1, max: 30 }),
});
type Practice = typeof anyPractice extends fc.Arbitrary<infer Value> ? Value : never;

/** No sign of guessing. */
const trend = { ...newLearner.trend, share: 1 };

const anySubject: fc.Arbitrary<ForecastSubject> = fc
  .record({
    skills: fc.array(fc.tuple(anySkillModel, anySkillState), { maxLength: 12 }),
    math: between(-4, 4),
    rw: between(-4, 4),
    practice: fc.array(anyPractice, { maxLength: 10 }),
    baselineTotal: fc.option(anyTotal),
    others: fc.integer({ min: 0, max: 30 }),
  })
  .map(({ skills, math, rw, practice, baselineTotal, others }) => {
    const model = modelOf(skills.map(([skill]) => skill));
    const states = skills.map(([, state], i) => [`skill ${i}`, state] as const);
    const abilities = { ...newLearner.abilities, math, rw };
    const activity = buildActivity(practice);
    return {
      learner: { ...newLearner, attempts: 100, trend, abilities, baselineTotal, activity },
      views: buildSkillViews(states, model, now),
      model,
      registeredSkills: skills.length + others,
      now,
    };
  });

function buildActivity(practice: readonly Practice[]): Activity {
  let activity = newActivity;
  for (const { ago, math, times } of practice)
    for (let i = 0; i < times; i++)
      activity = countActivity(activity, toUtcDay(now) - ago, { math, rw: 1 - math });
  return activity;
}

const forecastOf = (subject: ForecastSubject): Forecast => {
  const standing = assessLearner(subject);
  return createForecast(standing, buildHabit(standing, estimateCurrentPractice(standing)));
};

test('A forecast has a total of both sections, and intervals in tens around each score within the scale', () => {
  forAll(anySubject, anyDays, anyLevel, (subject, days, level) => {
    const { scores, intervals, sd } = forecastOf(subject).forecastIn(days, level);
    assert.equal(scores.total, scores.math + scores.rw);
    const scale = { math: [200, 800], rw: [200, 800], total: [400, 1600] } as const;
    for (const part of parts) {
      const { low, high } = intervals[part];
      assert.ok(low <= scores[part] && scores[part] <= high);
      assert.ok(low >= scale[part][0] && high <= scale[part][1]);
      for (const score of [low, high, scores[part]]) assert.equal(score % 10, 0);
    }
    assert.ok(intervals.total.low >= intervals.math.low + intervals.rw.low);
    assert.ok(intervals.total.high <= intervals.math.high + intervals.rw.high);
    assert.ok(sd.math >= 30 && sd.rw >= 30);
  });
});

test('A forecast has wider intervals at a higher level, and larger deviations for a later day', () => {
  const levels = fc.tuple(anyLevel, anyLevel).map(ordered);
  const days = fc.tuple(anyDays, anyDays).map(ordered);
  forAll(anySubject, days, levels, (subject, [soon, late], [less, more]) => {
    const forecast = forecastOf(subject);
    const [inner, outer] = [forecast.forecastIn(soon, less), forecast.forecastIn(soon, more)];
    for (const part of parts) {
      assert.ok(outer.intervals[part].low <= inner.intervals[part].low);
      assert.ok(inner.intervals[part].high <= outer.intervals[part].high);
    }
    const far = forecast.forecastIn(late, less);
    assert.ok(far.sd.math >= inner.sd.math && far.sd.rw >= inner.sd.rw && far.totalSd >= inner.totalSd);
  });
});

test('daysTo returns the first day on which the forecast reaches the target', () => {
  forAll(anySubject, anyTotal, (subject, target) => {
    const forecast = forecastOf(subject);
    const first = indices(366).find((day) => forecast.scoresIn(day).total >= target);
    assert.equal(forecast.daysTo(target), first ?? null);
    if (first !== undefined) assert.ok(forecast.forecastIn(first, 0.8).scores.total >= target);
  });
});

test('forecastLearner tracks a goal as the forecast of the target date predicts', () => {
  const left = fc.option(fc.integer({ min: -10, max: 700 }));
  forAll(anySubject, anyDays, anyTotal, left, (subject, days, targetScore, left) => {
    const targetDate = left === null ? null : formatDate(now + left * dayMs);
    const request = { days, level: 0.8, goal: { targetScore, targetDate, status: null } };
    const { current, goal, neededRate } = forecastLearner(subject, request);
    assert.equal(goal.progressPercent === 100, current.total >= targetScore);
    assert.ok(goal.progressPercent >= 0 && goal.probability >= 0 && goal.probability <= 1);
    const deadline = Math.min(365, Math.max(0, left ?? 365));
    const inTime = forecastOf(subject).forecastIn(deadline, 0.8).scores.total;
    const isReached = goal.daysToGoal !== null && goal.daysToGoal <= deadline;
    assert.equal(goal.onTrack, isReached && inTime >= targetScore);
    if (current.total >= targetScore) assert.equal(goal.daysToGoal, 0);
    if (goal.onTrack) assert.equal(neededRate, null);
  });
});

test('forecastPlan never falls with more practice and returns the lowest rate that reaches the goal', () => {
  const plan = fc.record({ rate: between(0, 60), chosen: fc.option(fc.nat({ max: 11 })), target: anyTotal });
  forRuns(50, anySubject, anyDays, plan, (subject, days, { rate, chosen, target }) => {
    const view = chosen === null ? undefined : subject.views[chosen];
    const skills = view === undefined ? null : [view];
    const request = { days, level: 0.8, goal: { targetScore: target, targetDate: null, status: null } };
    const planFor = (answersPerDay: number) =>
      forecastPlan(subject, { answersPerDay, skills }, request, days);
    const totalWith = (answersPerDay: number): number => planFor(answersPerDay).planned.scores.total;
    assert.ok(totalWith(rate + 1) >= totalWith(rate));
    const { neededAnswersPerDay: needed } = planFor(rate);
    if (needed === null) assert.ok(totalWith(maxAnswersPerDay) < target);
    else assert.ok(totalWith(needed) >= target && (needed === 0 || totalWith(needed - 1) < target));
  });
});

test('A steady habit improves a section without answers, and one of no answers equals idleness', () => {
  forAll(anySubject, anyDays, (subject, days) => {
    const views = subject.views.filter(({ placement }) => placement.section === 'math');
    const mathOnly = assessLearner({ ...subject, views });
    const plan = buildSteadyHabit(mathOnly, { math: 0, rw: 20 });
    assert.ok(projectAbilityChanges(mathOnly, plan)(100, 100).rw > 0);
    const standing = assessLearner(subject);
    const none = createForecast(standing, buildSteadyHabit(standing, { math: 0, rw: 0 }));
    const idle = { ...subject, learner: { ...subject.learner, activity: newActivity } };
    assert.deepEqual(none.scoresIn(days), forecastOf(idle).scoresIn(days));
  });
});

test('computePractice counts 14 days by section, late answers on their day and future answers as today', () => {
  const today = toUtcDay(now);
  let activity = newActivity;
  for (const day of [today - 13, today - 14, today - 2, today - 20, today, today])
    activity = countActivity(activity, day, { math: 1, rw: 0 });
  activity = countActivity(activity, today, { math: 0.5, rw: 0.5 });
  assert.deepEqual(computePractice(activity, today), {
    math: { rate: 4.5 / 14, activeDays: 3 },
    rw: { rate: 0.5 / 14, activeDays: 1 },
  });
  assert.deepEqual(computePractice(activity, today + 1).math, { rate: 3.5 / 14, activeDays: 2 });
  assert.deepEqual(computePractice(activity, today - 1), computePractice(activity, today));
  assert.deepEqual(computePractice(activity, today + 14).math, { rate: 0, activeDays: 0 });
});

test('normalQuantile inverts normalCdf', () => {
  forAll(fc.double({ min: 1e-12, max: 1 - 1e-12, noNaN: true }), (p) => {
    assert.ok(Math.abs(normalCdf(normalQuantile(p)) - p) < 1e-12);
  });
  assert.ok(Math.abs(normalQuantile(0.9) - 1.2815515655446004) < 1e-14);
});

test('createAbilityProjection keeps a mastery that is a rounding error below its prior', () => {
  const change = { pInit: 0.028, freshness: 0, learnRate: 0 };
  const skill = { weight: 1, mastery: 0.027999999999999997, change, halfLife: 30, graceDays: 0 };
  assert.equal(createAbilityProjection([skill])(365, 365), 0);
});

const anyHistory = fc.record({
  skills: fc.array(anySkillModel, { minLength: 6, maxLength: 6 }),
  isPlaced: fc.boolean(),
  others: fc.nat({ max: 60 }),
  /** Long runs of one outcome saturate the mastery of a skill. */
  answers: fc.array(
    fc.record({
      skill: fc.nat({ max: 5 }),
      isCorrect: fc.boolean(),
      days: fc.constantFrom(0, 0, 0, 1, 30, 200),
      times: fc.constantFrom(1, 1, 1, 20),
    }),
    { minLength: 1, maxLength: 40 },
  ),
  next: fc.nat({ max: 5 }),
});

for (const isCorrect of [true, false])
  test(`A ${isCorrect ? 'right answer never lowers' : 'wrong answer never raises'} a section or the total`, () => {
    const sign = isCorrect ? 1 : -1;
    fc.assert(
      fc.property(anyHistory, ({ skills, isPlaced, others, answers, next }) => {
        const model = modelOf(skills, isPlaced);
        const learner = createLearner(model);
        let now = 20_000 * dayMs;
        const answer = (skill: number, isCorrect: boolean): void =>
          learner.answer(`skill ${skill}`, null, { isCorrect, occurredAt: now });
        for (const { skill, isCorrect, days, times } of answers) {
          now += days * dayMs;
          for (let i = 0; i < times; i++) answer(skill, isCorrect);
        }
        // Any answer ends the decay of its skill, which can outweigh a wrong answer.
        const lastAt = learner.skills.get(`skill ${next}`)?.lastAttemptAt ?? now;
        fc.pre(isCorrect || now <= lastAt + forgettingConstants.graceDays * dayMs);
        const assess = () =>
          assessLearner({
            ...{ learner: learner.state(), model, now },
            views: buildSkillViews(learner.skills, model, now),
            registeredSkills: others + (isPlaced ? skills.length : 0),
          });
        const before = assess();
        answer(next, isCorrect);
        const after = assess();
        for (const section of ['math', 'rw'] as const) {
          const change = after.measures[section].mastery - before.measures[section].mastery;
          assert.ok(sign * change >= -1e-12, `${section} ${change}`);
        }
        const [from, to] = [before, after].map(({ estimate }) => computeScores(estimate.theta).total);
        assert.ok(sign * ((to ?? 0) - (from ?? 0)) >= 0, `total ${from} to ${to}`);
      }),
      // Shrinking would take minutes. The failure prints its seed and its learner.
      { numRuns: 400, endOnFailure: true },
    );
  });

test('A higher mastery of any skill never lowers a current score', () => {
  forAll(anySubject, fc.nat(), between(0, 1), (subject, place, share) => {
    const index = place % Math.max(1, subject.views.length);
    const views = subject.views.map((view, i) =>
      i === index ? { ...view, mastery: view.mastery + share * (0.999 - view.mastery) } : view,
    );
    const before = computeScores(assessLearner(subject).estimate.theta);
    const after = computeScores(assessLearner({ ...subject, views }).estimate.theta);
    for (const part of parts) assert.ok(after[part] >= before[part]);
  });
});
