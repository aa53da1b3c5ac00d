/** Score forecasts against the vectors of science.md, section 6. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs, type Section, sections, toUtcDay } from '../../src/domain/base/common.js';
import { resolveSkillModel, unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import type { SkillView } from '../../src/domain/learner/skill-view.js';
import { assessLearner, type ForecastSubject } from '../../src/domain/score/assessment.js';
import { createForecast, forecastLearner } from '../../src/domain/score/learner-forecast.js';
import { projectAbilityChanges } from '../../src/domain/score/mastery-projection.js';
import { buildHabit, estimateCurrentPractice } from '../../src/domain/score/practice-habit.js';
import {
  type Abilities,
  computeAbilityEvidence,
  newAbilities,
  updateAbilities,
} from '../../src/domain/tracing/ability.js';
import { type Activity, countActivity, newActivity } from '../../src/domain/tracing/activity.js';
import { computeRetention } from '../../src/domain/tracing/bkt.js';
import { newLearner, newSkill } from '../../src/domain/tracing/learner-states.js';
import { modelWith } from '../support/builders/study.js';
import { close, type ForecastVector, type SectionInput, vectors } from './vectors.js';

test('updateAbilities gives the golden abilities of both sections', () => {
  let abilities: Abilities = newAbilities;
  for (const { y, difficulty, guess, slip, shares, attempts, falling, ...after } of vectors.ekf) {
    const answer = { isCorrect: y === 1, questionDifficulty: difficulty };
    const evidence = computeAbilityEvidence(
      answer,
      [{ parameters: { pGuess: guess, pSlip: slip } }],
      attempts,
    );
    abilities = updateAbilities(abilities, evidence, shares, falling, 0);
    close(abilities.math, after.math, 'math');
    close(abilities.rw, after.rw, 'rw');
    close(abilities.mathVariance, after.math_variance, 'variance of math');
    close(abilities.rwVariance, after.rw_variance, 'variance of rw');
    close(abilities.covariance, after.covariance, 'covariance');
  }
});

const now = Date.UTC(2026, 0, 20, 12);
const today = toUtcDay(now);

/** The learner of a vector, with its practice of the last 14 days. */
function subjectOf({ input }: ForecastVector, baselineTotal: number | null): ForecastSubject {
  const placed = sections.flatMap((section) =>
    Array.from({ length: input[section].K }, () => ({ section: input[section].open ? null : section })),
  );
  return {
    learner: {
      ...newLearner,
      // A new learner's earlier days would count as unknown.
      attempts: 10_000,
      // No sign of guessing.
      trend: { ...newLearner.trend, share: 1 },
      abilities: { ...newAbilities, math: input.math.thetaE, rw: input.rw.thetaE },
      baselineTotal,
      activity: practise(input),
    },
    views: sections.flatMap((section) => {
      // Skills of open sections belong to both sections, and the vector lists them twice.
      const skills = section === 'rw' && input.rw.open ? [] : input[section].skills;
      return skills.map((skill, i) => viewOf(`${section} ${i}`, section, skill));
    }),
    model: modelWith(Object.fromEntries(placed.map((entry, i) => [`known ${i}`, entry]))),
    registeredSkills: placed.length,
    now,
  };
}

function viewOf(
  skillId: string,
  section: Section,
  { w, share = 1, m, T, right, wrong, source, idle = 0, cd = 1 }: SectionInput['skills'][number],
): SkillView {
  const state = {
    ...newSkill(defaultParameters),
    attempts: right + wrong,
    correct: right,
    correctDays: cd,
    lastAttemptAt: now - idle * dayMs,
    lastCorrectDay: right > 0 ? today - idle : -1,
  };
  const parameters = { ...defaultParameters, pLearn: T };
  return {
    skillId,
    state,
    model: { ...resolveSkillModel(unfittedModel, ''), parameters, source },
    placement: { section: share === 1 ? section : null, weight: w / share },
    mastery: m,
    retention: computeRetention(state, now),
  };
}

/** The answers of 14 days at the rate, on the active days. */
function practise(input: ForecastVector['input']): Activity {
  let activity = newActivity;
  for (const section of sections) {
    const { rate, active_days_14 } = input[section];
    const share = { math: section === 'math' ? 1 : 0, rw: section === 'rw' ? 1 : 0 };
    for (let i = 0; i < 14 * rate; i++)
      activity = countActivity(activity, today - (i % active_days_14), share);
  }
  return activity;
}

const forecasts = Object.entries(vectors.forecast);

test('assessLearner gives the golden measures of both sections', () => {
  for (const [name, vector] of forecasts) {
    const { measures } = assessLearner(subjectOf(vector, null));
    for (const section of sections) {
      const expected = vector.measure[section];
      const { answers, mastery, ability, noise, distrust } = measures[section];
      assert.equal(answers, vector.input[section].n);
      close(mastery, expected.x, `x of ${name}`);
      close(ability, expected.thB, `thB of ${name}`);
      if (expected.R === null) assert.equal(noise, Number.POSITIVE_INFINITY);
      else close(noise, expected.R, `R of ${name}`);
      close(distrust, expected.D, `D of ${name}`);
    }
  }
});

for (const [name, vector] of forecasts)
  test(`createForecast gives the golden scores and intervals of the case ${name}`, () => {
    const subject = subjectOf(vector, null);
    const standing = assessLearner(subject);
    const { estimate } = standing;
    const habit = buildHabit(standing, estimateCurrentPractice(standing));
    const forecast = createForecast(standing, habit);
    const project = projectAbilityChanges(standing, habit);
    const cases = Object.entries(vector.by_days).map(([days, expected]) => ({ days, level: 0.8, expected }));
    if (vector.days30_level95) cases.push({ days: '30', level: 0.95, expected: vector.days30_level95 });
    for (const { days, level, expected } of cases) {
      const { scores, intervals, sd, totalSd } = forecast.forecastIn(Number(days), level);
      const changes = project(Number(days), Number(days));
      for (const section of sections) {
        close(estimate.theta[section], expected[`theta_${section}`] as number, 'theta');
        assert.equal(forecast.current[section], expected[`current_${section}`]);
        close(changes[section], expected[`dtheta_${section}`] as number, `change in ${days} days`);
        assert.equal(scores[section], expected[`predicted_${section}`]);
        close(sd[section], expected[`sd_${section}`] as number, `sd in ${days} days`);
        assert.deepEqual(Object.values(intervals[section]), expected[`ci_${section}`]);
      }
      assert.equal(scores.total, expected.predicted_total);
      close(totalSd, expected.sd_total as number, 'sd of the total');
      assert.deepEqual(Object.values(intervals.total), expected.ci_total);
    }
  });

test('forecastLearner gives the golden days to a goal, progress and probability', () => {
  const both = vectors.forecast.both as ForecastVector;
  for (const { target, base, deadline, out } of vectors.goal) {
    const date = deadline === null ? null : new Date((today + deadline) * dayMs).toISOString().slice(0, 10);
    const goal = { targetScore: target, targetDate: date, status: null };
    const { goal: found } = forecastLearner(subjectOf(both, base), { days: 30, level: 0.8, goal });
    assert.equal(found.daysToGoal, out.days_to_goal);
    assert.equal(found.progressPercent, out.progress_percent);
    assert.equal(found.onTrack, out.on_track);
    close(found.probability, out.goal_probability, 'probability');
  }
});
