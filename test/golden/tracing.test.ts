import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultParameters } from '../../src/domain/base/bkt-parameters.js';
import { dayMs } from '../../src/domain/base/common.js';
import { computeEffectiveMastery, computeHalfLife } from '../../src/domain/tracing/bkt.js';
import {
  computeCalibration,
  newCalibration,
  updateCalibration,
} from '../../src/domain/tracing/calibration.js';
import {
  computePlateauSlope,
  isPlateau,
  newPlateau,
  type PlateauState,
  updatePlateau,
} from '../../src/domain/tracing/plateau.js';
import {
  computeCorrectPerMinute,
  computeEfficiencyIndex,
  computeRapidThreshold,
  computeSkillNorm,
  newPace,
  newRapid,
  updatePace,
} from '../../src/domain/tracing/response-times.js';
import { close, vectors } from './vectors.js';

for (const { L, idle_days, correct_days, half_life, effective } of vectors.decay) {
  test(`mastery ${L} after ${idle_days} idle days, ${correct_days} days with a right answer`, () => {
    const skill = { mastery: L, correctDays: correct_days, lastAttemptAt: 0, attempts: 1 };
    close(computeHalfLife(correct_days), half_life, 'half-life');
    close(
      computeEffectiveMastery(defaultParameters.pInit, skill, idle_days * dayMs),
      effective,
      'effective mastery',
    );
  });
}

for (const { mean, n, thr } of vectors.rapid_threshold) {
  test(`rapid threshold at a mean of ${mean} s over ${n} answers`, () => {
    close(computeRapidThreshold(mean === null ? null : { answers: n, meanSeconds: mean }), thr);
  });
}

function checkPlateau(
  state: PlateauState,
  expected: { slope: number | null; se: number | null; plateau: boolean },
): void {
  const trend = computePlateauSlope(state);
  if (expected.slope === null) assert.equal(trend, null);
  else close(trend?.slope ?? Number.NaN, expected.slope, 'slope');
  if (expected.se !== null) close(trend?.standardError ?? Number.NaN, expected.se, 'standard error');
  assert.equal(isPlateau(state), expected.plateau);
}

for (const name of ['stuck', 'learner'] as const) {
  test(`plateau: ${name}`, () => {
    let state = newPlateau;
    for (const step of vectors.plateau[name]) {
      state = updatePlateau(state, step.mastery, 0);
      checkPlateau(state, step);
    }
  });
}

test('plateau: steady progress of .01 per attempt', () => {
  let state = newPlateau;
  for (const [i, [slope, plateau]] of vectors.plateau.linear_input.slope_flag.entries()) {
    state = updatePlateau(state, 0.3 + 0.01 * i, 0);
    checkPlateau(state, { slope, se: slope === null ? null : 0, plateau });
  }
});

type Times = (typeof vectors.efficiency)[number]['norm'];
const normOf = ({ n, correct, mean_ln, m2 }: Times) =>
  computeSkillNorm({ answers: n, correct, logMean: mean_ln, logM2: m2 });

for (const { case: name, norm, answers, ...expected } of vectors.efficiency) {
  test(`efficiency: ${name}`, () => {
    let state = newPace;
    for (const [y, seconds] of answers) state = updatePace(state, y === 1, seconds, normOf(norm), false);
    close(state.slowness, expected.slowness, 'slowness');
    close(state.accuracy, expected.accuracy, 'accuracy');
    close(computeEfficiencyIndex(state, newRapid, normOf(norm)) ?? Number.NaN, expected.index, 'index');
    close(
      computeCorrectPerMinute(state) ?? Number.NaN,
      expected.correct_per_minute,
      'correct answers per minute',
    );
  });
}

test('skill norm', () => {
  const { mu, sd, accuracy } = vectors.skill_norm;
  const norm = normOf(vectors.skill_norm);
  close(norm.logMean, mu, 'mean');
  close(norm.logSd, sd, 'standard deviation');
  close(norm.accuracy, accuracy, 'accuracy');
});

test('calibration', () => {
  let state = newCalibration;
  for (const [confidence, y] of vectors.calibration.conf_correct) {
    state = updateCalibration(state, confidence, y === 1);
  }
  const { brier, bias } = computeCalibration(state) ?? { brier: Number.NaN, bias: Number.NaN };
  close(brier, vectors.calibration.brier, 'Brier score');
  close(bias, vectors.calibration.bias, 'bias');
});
