import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newAbility, updateAbility } from '../../src/domain/ability.js';
import { startAccuracy } from '../../src/domain/accuracy/model.js';
import { type Activity, countActivity, newActivity } from '../../src/domain/activity.js';
import { catalogueOf, type SkillEntry } from '../../src/domain/catalogue.js';
import {
  estimateLearner,
  type ForecastSubject,
  forecastUnder,
  presentHabit,
} from '../../src/domain/forecast.js';
import { dayMs, dayOf } from '../../src/domain/forgetting.js';
import { forecastLearner } from '../../src/domain/learner-forecast.js';
import { newLearner, newSkill } from '../../src/domain/mastery.js';
import { defaultParameters } from '../../src/domain/params.js';
import { estimateAbilities, forecastScores, type SectionEvidence, scoresOf } from '../../src/domain/score.js';
import { sectionSums } from '../../src/domain/skill-view.js';
import { skillModelOf, unfittedModel } from '../../src/domain/tenant-model.js';
import type { Section } from '../../src/domain/types.js';
import { close, vectors } from './vectors.js';

test('ability filter', () => {
  let ability = newAbility;
  for (const { y, b, theta, v } of vectors.ekf) {
    ability = updateAbility(ability, y === 1, 1, b);
    close(ability.theta, theta, 'theta');
    close(ability.variance, v, 'variance');
  }
});

for (const [name, { input, by_days, days30_level95 }] of Object.entries(vectors.forecast)) {
  const evidenceOf = (section: 'math' | 'rw'): SectionEvidence => ({
    ability: { theta: input[section].thetaE, variance: 1, answers: input[section].n },
    seen: sectionSums(
      input[section].skills.map(({ m, w }) => ({ mastery: m, placement: { section, weight: w } })),
    )[section],
    knownWeight: input[section].W,
  });
  const estimate = estimateAbilities({ math: evidenceOf('math'), rw: evidenceOf('rw') });
  const cases = Object.entries(by_days).map(([days, expected]) => ({
    days: Number(days),
    level: 0.8,
    expected,
  }));
  if (days30_level95) cases.push({ days: 30, level: 0.95, expected: days30_level95 });

  for (const { days, level, expected } of cases) {
    test(`forecast ${name}, ${days} days, level ${level}`, () => {
      const change = { math: expected.dtheta_math as number, rw: expected.dtheta_rw as number };
      const { scores, intervals, sd, totalSd } = forecastScores(estimate, change, days, level);
      const current = scoresOf(estimate.theta);
      for (const section of ['math', 'rw'] as const) {
        assert.equal(current[section], expected[`current_${section}`]);
        assert.equal(scores[section], expected[`predicted_${section}`]);
        close(sd[section], expected[`sd_${section}`] as number, 'sd');
        assert.deepEqual(Object.values(intervals[section]), expected[`ci_${section}`]);
      }
      assert.equal(scores.total, expected.predicted_total);
      close(totalSd, expected.sd_total as number, 'sd of the total');
      assert.deepEqual(Object.values(intervals.total), expected.ci_total);
    });
  }
}

const now = Date.UTC(2026, 0, 20, 12);
const today = dayOf(now);

/** A learner as the vectors tell it: with the practice of the last 14 days in its own record. */
function subjectOf(
  { input }: (typeof vectors.forecast)[string],
  baselineTotal: number | null,
): ForecastSubject {
  const skills = (['math', 'rw'] as const).flatMap((section) =>
    input[section].skills.map((skill, i) => ({ section, id: `${section} ${i}`, ...skill })),
  );
  const entries = Array.from({ length: input.math.K + input.rw.K }, (_, i) =>
    entryOf(i < input.math.K ? 'math' : 'rw'),
  );
  const catalogue = catalogueOf(1, new Map(entries.map((entry, i) => [`known ${i}`, entry])));
  const model = skillModelOf(unfittedModel, '');
  return {
    learner: {
      ...newLearner,
      math: { theta: input.math.thetaE, variance: 1, answers: input.math.n },
      rw: { theta: input.rw.thetaE, variance: 1, answers: input.rw.n },
      baselineTotal,
      activity: practised(input),
    },
    views: skills.map(({ section, id, w, m, T, idle = 0, cd = 1 }) => ({
      skillId: id,
      state: {
        ...newSkill(defaultParameters),
        attempts: 5,
        correctDays: cd,
        lastAttemptAt: now - idle * dayMs,
      },
      model: { ...model, parameters: { ...defaultParameters, pLearn: T } },
      placement: { section, weight: w },
      mastery: m,
    })),
    catalogue,
    knownSkills: entries.length,
    now,
  };
}

const entryOf = (section: Section): SkillEntry => ({
  name: null,
  section,
  weight: 1,
  parameters: null,
  revision: 1,
  updatedAt: 0,
});

/** As many answers as the rate comes to in 14 days, on as many of them as were active. */
function practised(input: (typeof vectors.forecast)[string]['input']): Activity {
  let activity = newActivity;
  for (const section of ['math', 'rw'] as const) {
    const { rate, active_days_14 } = input[section];
    const share = { math: section === 'math' ? 1 : 0, rw: section === 'rw' ? 1 : 0 };
    for (let i = 0; i < 14 * rate; i++)
      activity = countActivity(activity, today - (i % active_days_14), share);
  }
  return activity;
}

for (const [name, vector] of Object.entries(vectors.forecast)) {
  test(`forecast ${name} from the learner's states`, () => {
    const subject = subjectOf(vector, null);
    const estimate = estimateLearner(subject);
    const forecast = forecastUnder(subject, estimate, presentHabit(subject));
    for (const [days, expected] of Object.entries(vector.by_days)) {
      const { scores, intervals, sd } = forecast.forecastIn(Number(days), 0.8);
      for (const section of ['math', 'rw'] as const) {
        assert.equal(forecast.current[section], expected[`current_${section}`]);
        assert.equal(scores[section], expected[`predicted_${section}`]);
        close(sd[section], expected[`sd_${section}`] as number, `sd in ${days} days`);
        assert.deepEqual(Object.values(intervals[section]), expected[`ci_${section}`]);
      }
      assert.deepEqual(Object.values(intervals.total), expected.ci_total);
    }
  });
}

test('goals against the case "both"', () => {
  const both = vectors.forecast.both as (typeof vectors.forecast)[string];
  for (const { target, base, deadline, out } of vectors.goal) {
    const subject = subjectOf(both, base);
    const targetDate =
      deadline === null ? null : new Date((today + deadline) * dayMs).toISOString().slice(0, 10);
    const { goal } = forecastLearner(subject, startAccuracy, {
      days: 30,
      level: 0.8,
      goal: { targetScore: target, targetDate },
    });
    assert.equal(goal.daysToGoal, out.days_to_goal);
    assert.equal(goal.progressPercent, out.progress_percent);
    assert.equal(goal.onTrack, out.on_track);
  }
});
