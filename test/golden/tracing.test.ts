/** Learner state against the vectors of science.md, sections 1 and 3 to 5. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultParameters, difficultyConstants } from '../../src/domain/base/bkt-parameters.js';
import { dayMs } from '../../src/domain/base/common.js';
import { computeTheilSen } from '../../src/domain/learner/velocity.js';
import {
  computeDifficultyShift,
  computeEffectiveMastery,
  computeHalfLife,
  predictSkills,
  pStar,
  type SkillMastery,
  shiftGuessSlip,
  traceAnswer,
  traceQuestion,
} from '../../src/domain/tracing/bkt.js';
import {
  computeCalibration,
  newCalibration,
  updateCalibration,
} from '../../src/domain/tracing/calibration.js';
import { closeDay, computeMomentum, newMomentum } from '../../src/domain/tracing/momentum.js';
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

const shiftOf = (difficulty: number | null): number =>
  difficulty === null ? 0 : computeDifficultyShift(defaultParameters, difficulty, difficultyConstants.scale);

test('traceAnswer gives the golden masteries of whole sequences, with and without difficulties', () => {
  for (const sequence of [...vectors.bkt_plain, ...vectors.bkt_difficulty]) {
    let mastery = defaultParameters.pInit;
    for (const [i, { y, b, ...expected }] of sequence.entries()) {
      close(mastery, expected.mastery_before, `mastery before answer ${i}`);
      const step = traceAnswer(defaultParameters, mastery, y === 1, shiftOf(b));
      close(step.pCorrect, expected.p_correct, `p correct of answer ${i}`);
      close(step.posterior, expected.posterior, `posterior of answer ${i}`);
      close(step.masteryAfter, expected.mastery_after, `mastery after answer ${i}`);
      mastery = step.masteryAfter;
    }
  }
});

test('traceQuestion gives the golden masteries of questions with one to four skills', () => {
  for (const { case: name, skills, answers } of vectors.conjunctive) {
    const parameters = skills.map(({ p_init, p_learn, p_guess, p_slip, p_forget }) => ({
      ...{ pInit: p_init, pLearn: p_learn, pGuess: p_guess, pSlip: p_slip, pForget: p_forget },
    }));
    let masteries = parameters.map(({ pInit }) => pInit);
    for (const [i, { y, shift, p_correct, ...expected }] of answers.entries()) {
      const asked = parameters.map((own, skill) => ({
        parameters: own,
        mastery: masteries[skill] as number,
      }));
      const question = asked as [SkillMastery, ...SkillMastery[]];
      close(predictSkills(question, shift), p_correct, `${name}: p correct of answer ${i}`);
      const steps = traceQuestion(question, y === 1, shift);
      for (const [skill, { posterior, masteryAfter }] of steps.entries()) {
        const place = `${name}: skill ${skill}, answer ${i}`;
        close(masteries[skill], expected.before[skill] as number, `mastery before, ${place}`);
        close(posterior, expected.posterior[skill] as number, `posterior, ${place}`);
        close(masteryAfter, expected.after[skill] as number, `mastery after, ${place}`);
      }
      masteries = steps.map(({ masteryAfter }) => masteryAfter);
    }
  }
});

/** One answer, perhaps without the guard. */
interface Step {
  L: number;
  y: number;
  guard?: boolean;
  after: number;
}

test('traceAnswer gives the golden masteries for extremes and no guard', () => {
  const steps: readonly Step[] = vectors.bkt_extremes;
  for (const one of steps) {
    const { L, y, guard = true, after } = one;
    const { masteryAfter } = traceAnswer(defaultParameters, L, y === 1, 0, guard);
    close(masteryAfter, after, JSON.stringify(one));
  }
});

test('shiftGuessSlip gives the golden guess, slip and Bayes factors', () => {
  for (const { b, guess, slip, bf_correct, bf_incorrect } of vectors.item_guess_slip) {
    const { pGuess, pSlip } = shiftGuessSlip(defaultParameters, shiftOf(b));
    close(pGuess, guess, `guess at ${b}`);
    close(pSlip, slip, `slip at ${b}`);
    close((1 - pSlip) / pGuess, bf_correct, `Bayes factor of a right answer at ${b}`);
    close(pSlip / (1 - pGuess), bf_incorrect, `Bayes factor of a wrong answer at ${b}`);
  }
});

test('pStar gives the golden value of the defaults', () => {
  close(pStar(defaultParameters), vectors.p_star.defaults);
});

test('computeEffectiveMastery gives the golden masteries after idle days', () => {
  for (const { L, idle_days, correct_days, half_life, effective } of vectors.decay) {
    const skill = { mastery: L, correctDays: correct_days, lastAttemptAt: 0, attempts: 1 };
    const found = computeEffectiveMastery(defaultParameters.pInit, skill, idle_days * dayMs);
    close(computeHalfLife(correct_days), half_life, 'half-life');
    close(found, effective, `mastery ${L} after ${idle_days} days`);
  }
});

test('computeRapidThreshold gives the golden thresholds', () => {
  for (const { mean, n, thr } of vectors.rapid_threshold) {
    const times = mean === null ? null : { answers: n, meanSeconds: mean };
    close(computeRapidThreshold(times), thr, `mean ${mean}`);
  }
});

function checkPlateau(
  state: PlateauState,
  expected: { slope: number | null; se: number | null; plateau: boolean },
): void {
  const trend = computePlateauSlope(state);
  if (expected.slope === null) assert.equal(trend, null);
  else close(trend?.slope, expected.slope, 'slope');
  if (expected.se !== null) close(trend?.standardError, expected.se, 'standard error');
  assert.equal(isPlateau(state), expected.plateau);
}

test('updatePlateau gives the golden slopes and flags of a stuck, a learning and a steady learner', () => {
  for (const name of ['stuck', 'learner'] as const) {
    let state = newPlateau;
    for (const step of vectors.plateau[name]) {
      state = updatePlateau(state, step.mastery, 0);
      checkPlateau(state, step);
    }
  }
  let state = newPlateau;
  const flags = vectors.plateau.linear_input.slope_flag as [slope: number | null, plateau: boolean][];
  for (const [i, [slope, plateau]] of flags.entries()) {
    state = updatePlateau(state, 0.3 + 0.01 * i, 0);
    checkPlateau(state, { slope, se: slope === null ? null : 0, plateau });
  }
});

type Times = (typeof vectors.efficiency)[number]['norm'];
const normOf = ({ n, correct, mean_ln, m2 }: Times) =>
  computeSkillNorm({ answers: n, correct, logMean: mean_ln, logM2: m2 });

test('updatePace gives the golden efficiency and correct answers per minute', () => {
  for (const { case: name, norm, answers, ...expected } of vectors.efficiency) {
    let state = newPace;
    for (const [y, seconds = 0] of answers) state = updatePace(state, y === 1, seconds, normOf(norm), false);
    close(state.slowness, expected.slowness, `slowness, ${name}`);
    close(state.accuracy, expected.accuracy, `accuracy, ${name}`);
    close(computeEfficiencyIndex(state, newRapid, normOf(norm)), expected.index, `index, ${name}`);
    close(computeCorrectPerMinute(state), expected.correct_per_minute, `correct per minute, ${name}`);
  }
});

test('computeSkillNorm gives the golden norm', () => {
  const { mu, sd, accuracy } = vectors.skill_norm;
  const norm = normOf(vectors.skill_norm);
  close(norm.logMean, mu, 'mean');
  close(norm.logSd, sd, 'standard deviation');
  close(norm.accuracy, accuracy, 'accuracy');
});

test('computeCalibration gives the golden Brier score and bias', () => {
  let state = newCalibration;
  for (const [confidence = 0, y] of vectors.calibration.conf_correct)
    state = updateCalibration(state, confidence, y === 1);
  const found = computeCalibration(state);
  close(found?.brier, vectors.calibration.brier, 'Brier score');
  close(found?.bias, vectors.calibration.bias, 'bias');
});

const { t, y, slope, lo90, hi90 } = vectors.theil_sen;
const points = t.map((time, i) => ({ time, value: y[i] as number }));

test('computeTheilSen gives the golden slope and interval', () => {
  const found = computeTheilSen(points);
  close(found?.slope, slope, 'slope');
  close(found?.low, lo90, 'low');
  close(found?.high, hi90, 'high');
});

test('computeMomentum gives the golden momentum', () => {
  let state = newMomentum;
  for (const { time, value } of points) state = closeDay(state, time, value);
  const { short, long, momentum } = vectors.momentum;
  close(state.short, short, 'short');
  close(state.long, long, 'long');
  const found = computeMomentum(state);
  close(found?.value, momentum, 'momentum');
  assert.equal(found?.label, 'building');
});
