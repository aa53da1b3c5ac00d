import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newAbility, updateAbility } from '../../src/domain/ability.js';
import { trackGoal } from '../../src/domain/goal.js';
import { estimateAbilities, forecastScores, type SectionEvidence, scoresOf } from '../../src/domain/score.js';
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
    skills: input[section].skills.map(({ m, w }) => ({ mastery: m, weight: w })),
    seenSkills: input[section].skills.length,
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

test('goals against the case "both"', () => {
  const totals = (days: number): number => (days >= 36 ? 1110 : 1070);
  for (const { target, base, deadline, out } of vectors.goal) {
    const progress = trackGoal({ targetScore: target, daysLeft: deadline }, base, 1070, totals);
    assert.equal(progress.daysToGoal, out.days_to_goal);
    assert.equal(progress.progressPercent, out.progress_percent);
    assert.equal(progress.onTrack, out.on_track);
  }
});
