/** Invariants of Bayesian Knowledge Tracing and of plateaus. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultParameters, fitBounds } from '../../src/domain/base/bkt-parameters.js';
import { dayMs } from '../../src/domain/base/common.js';
import {
  computeDifficultyShift,
  computeEffectiveMastery,
  computeHalfLife,
  computeMaxForget,
  pStar,
  shiftGuessSlip,
  traceAnswer,
} from '../../src/domain/tracing/bkt.js';
import {
  computePlateauSlope,
  computeSmoothedMastery,
  isPlateau,
  newPlateau,
  type PlateauState,
  updatePlateau,
} from '../../src/domain/tracing/plateau.js';
import { countAnswers } from '../support/builders/answers.js';
import { anyAnswer, anyParameters, between, ordered, rounding } from '../support/builders/arbitraries.js';
import { fc, forAll, forRuns } from '../support/builders/properties.js';

const anyScale = between(0, 1);
const anyDifficulty = between(-6, 6);
const anyMastery = between(0, 1);

test('traceAnswer never lowers mastery after a right answer, and never raises it after a wrong one', () => {
  const answer = fc.record({ isCorrect: fc.boolean(), b: anyDifficulty, k: anyScale });
  forRuns(2000, anyParameters, anyMastery, answer, (skill, before, { isCorrect, b, k }) => {
    const shift = computeDifficultyShift(skill, b, k);
    const step = traceAnswer(skill, before, isCorrect, shift);
    assert.ok(step.masteryAfter >= 0.001 && step.masteryAfter <= 0.999);
    assert.ok(step.pCorrect > 0 && step.pCorrect < 1);
    assert.ok(step.posterior >= 0 && step.posterior <= 1);
    if (isCorrect) assert.ok(step.masteryAfter >= Math.min(before, 0.999) - rounding);
    else assert.ok(step.masteryAfter <= Math.max(before, 0.001));
  });
});

test('traceAnswer returns a posterior of 1 or 0 if guess and slip are 0', () => {
  const certain = { ...defaultParameters, pGuess: 0, pSlip: 0, pForget: 0 };
  assert.equal(traceAnswer(certain, 0.5, true).posterior, 1);
  assert.equal(traceAnswer(certain, 0.5, false).posterior, 0);
});

test('traceAnswer without its guard raises mastery after a wrong answer only below P*', () => {
  forAll(anyParameters, between(0.001, 0.999), (skill, before) => {
    fc.pre(Math.abs(before - pStar(skill)) > 1e-9);
    const after = (pForget: number) =>
      traceAnswer({ ...skill, pForget }, before, false, 0, false).masteryAfter;
    if (before < pStar(skill)) assert.ok(after(0) >= before);
    else for (const pForget of [0, skill.pForget]) assert.ok(after(pForget) <= before);
  });
});

test('computeMaxForget returns the largest pForget with which right answers reach a mastery', () => {
  forAll(anyParameters, between(0.5, 0.99), (skill, mastery) => {
    const most = computeMaxForget(skill, mastery);
    const after = (before: number, pForget: number): number =>
      traceAnswer({ ...skill, pForget }, before, true, 0, false).masteryAfter;
    let reached = skill.pInit;
    for (let i = 0; i < 300; i++) reached = after(reached, most);
    fc.pre(most + skill.pLearn < 0.99 && Math.abs(after(reached, most) - reached) < 1e-9);
    assert.ok(Math.abs(reached - mastery) < 1e-3, `${reached}`);
    assert.ok(after(mastery, most + 1e-4) < mastery && after(mastery, most - 1e-4) > mastery);
  });
});

test('traceAnswer applies learning and forgetting to the posterior', () => {
  forAll(anyParameters, anyMastery, fc.boolean(), (skill, before, isCorrect) => {
    const step = traceAnswer(skill, before, isCorrect, 0, false);
    const learned = (1 - step.posterior) * skill.pLearn;
    const expected = step.posterior - step.posterior * skill.pForget + learned;
    assert.ok(Math.abs(step.masteryAfter - Math.min(Math.max(expected, 0.001), 0.999)) <= rounding);
  });
});

test('traceAnswer returns a higher mastery if the mastery before was higher, or the question harder', () => {
  const masteries = fc.tuple(anyMastery, anyMastery).map(ordered);
  const difficulties = fc.tuple(anyDifficulty, anyDifficulty).map(ordered);
  const answer = fc.record({ isCorrect: fc.boolean(), difficulties, k: anyScale });
  forRuns(1000, anyParameters, masteries, answer, (skill, [low, high], { isCorrect, difficulties, k }) => {
    const [easy, hard] = difficulties;
    const trace = (before: number, b: number) =>
      traceAnswer(skill, before, isCorrect, computeDifficultyShift(skill, b, k));
    assert.ok(trace(low, easy).masteryAfter <= trace(high, easy).masteryAfter + rounding);
    assert.ok(trace(low, easy).masteryAfter <= trace(low, hard).masteryAfter + rounding);
    assert.ok(trace(low, easy).pCorrect >= trace(low, hard).pCorrect - rounding);
  });
});

test('computeDifficultyShift moves guess and slip only within their bounds', () => {
  forAll(anyParameters, anyDifficulty, anyScale, (skill, b, k) => {
    const shift = computeDifficultyShift(skill, b, k);
    assert.ok(Math.abs(shift) <= 3 * k && shift * b >= 0);
    const { pGuess, pSlip } = shiftGuessSlip(skill, shift);
    assert.ok(1 - pSlip > pGuess);
    for (const [value, own, { low, high }] of [
      [pGuess, skill.pGuess, fitBounds.itemGuess],
      [pSlip, skill.pSlip, fitBounds.itemSlip],
    ] as const)
      assert.ok(value >= Math.min(low, own) - rounding && value <= Math.max(high, own) + rounding);
  });
});

test('traceAnswer returns the same bits without a difficulty, at difficulty 0 and at scale 0', () => {
  forAll(anyParameters, anyMastery, fc.boolean(), anyDifficulty, (skill, before, isCorrect, b) => {
    const { pGuess, pSlip } = shiftGuessSlip(skill, 0);
    assert.deepEqual([pGuess, pSlip], [skill.pGuess, skill.pSlip]);
    const plain = traceAnswer(skill, before, isCorrect);
    for (const shift of [computeDifficultyShift(skill, 0, 0.5), computeDifficultyShift(skill, b, 0)]) {
      assert.ok(Object.is(shift, 0));
      assert.deepEqual(traceAnswer(skill, before, isCorrect, shift), plain);
    }
  });
});

test('computeEffectiveMastery keeps mastery for a day, then lowers it towards the prior', () => {
  const anyIdle = fc.tuple(between(0, 4000), between(0, 4000)).map(ordered);
  const anyDays = fc.integer({ min: 0, max: 60 });
  const anySkill = fc.record({ pInit: between(0.01, 0.98), mastery: between(0.001, 0.999), days: anyDays });
  forAll(anySkill, anyIdle, ({ pInit, mastery, days: correctDays }, [sooner, later]) => {
    const skill = { mastery, correctDays, lastAttemptAt: 5e11, attempts: 3 };
    const at = (days: number) => computeEffectiveMastery(pInit, skill, 5e11 + days * dayMs);
    for (const days of [-400, 0, 0.5, 1]) assert.equal(at(days), mastery);
    assert.ok(at(later) <= at(sooner));
    assert.ok(at(later) >= Math.min(mastery, pInit) && at(later) <= mastery);
    if (mastery > pInit + 0.01) assert.ok(at(1 + 1 / dayMs) < mastery);
  });
  const unanswered = { mastery: 0.3, correctDays: 0, lastAttemptAt: 0, attempts: 0 };
  assert.equal(computeEffectiveMastery(0.42, unanswered, 1e12), 0.42);
  assert.deepEqual([computeHalfLife(0), computeHalfLife(3000)], [30, 365]);
});

const thousandths = (min: number, max: number) => fc.integer({ min, max }).map((step) => step / 1000);
const masteries = (lengths: { minLength?: number; maxLength: number }) =>
  fc.array(thousandths(1, 999), { ...lengths, size: 'max' });

const updateAll = (list: readonly number[], from: PlateauState = newPlateau): PlateauState =>
  list.reduce((state, mastery) => updatePlateau(state, mastery, 0), from);

const sumOf = <T>(list: readonly T[], value: (one: T) => number): number =>
  list.reduce((sum, one) => sum + value(one), 0);

/** The regression of the whole list: weights .9^age, times 0, -1, -2, ... back from the last attempt. */
function regress(list: readonly number[]): { slope: number; squaredError: number; mean: number } {
  const points = list.map((y, i) => ({ y, t: i - list.length + 1, w: 0.9 ** (list.length - 1 - i) }));
  const weight = sumOf(points, ({ w }) => w);
  const mean = sumOf(points, ({ w, y }) => w * y) / weight;
  const meanTime = sumOf(points, ({ w, t }) => w * t) / weight;
  const spread = sumOf(points, ({ w, t }) => w * (t - meanTime) ** 2);
  const slope = sumOf(points, ({ w, t, y }) => w * (t - meanTime) * (y - mean)) / spread;
  const residual = sumOf(points, ({ w, t, y }) => w * (y - mean - slope * (t - meanTime)) ** 2);
  const effective = weight ** 2 / sumOf(points, ({ w }) => w * w);
  return { slope, squaredError: residual / ((1 - 2 / effective) * weight * spread), mean };
}

test('updatePlateau keeps the weighted regression of all attempts, also beyond 400 attempts', () => {
  const check = (list: readonly number[]): void => {
    const { slope, squaredError, mean } = regress(list);
    const state = updateAll(list);
    const trend = computePlateauSlope(state);
    assert.ok(state.attempts <= 400 && trend !== null);
    assert.ok(Math.abs(trend.slope - slope) < 1e-9, `slope ${trend.slope} is not ${slope}`);
    assert.ok(Math.abs(trend.standardError ** 2 - squaredError) < 1e-9, 'squared error');
    assert.ok(Math.abs((computeSmoothedMastery(state) ?? Number.NaN) - mean) < 1e-9, 'smoothed mastery');
  };
  forAll(masteries({ minLength: 3, maxLength: 80 }), check);
  forRuns(5, masteries({ minLength: 395, maxLength: 900 }), check);
  assert.equal(computeSmoothedMastery(newPlateau), null);
  for (const list of [[], [0.5], [0.5, 0.6]]) assert.equal(computePlateauSlope(updateAll(list)), null);
});

test('isPlateau is true after three attempts in a row that pass the test, from the fourteenth on', () => {
  const flat = fc
    .integer({ min: 100, max: 850 })
    .chain((low) => fc.array(thousandths(low, low + 120), { maxLength: 40, size: 'max' }));
  forRuns(300, fc.oneof(flat, masteries({ maxLength: 40 })), (list) => {
    let state = newPlateau;
    let run = 0;
    for (const [i, mastery] of list.entries()) {
      state = updatePlateau(state, mastery, 0);
      const { slope, squaredError, mean } = regress(list.slice(0, i + 1));
      const margin = slope + 1.2816 * Math.sqrt(squaredError) - 0.02;
      if (i >= 11) fc.pre(Math.abs(margin) > 1e-9 && Math.abs(mean - 0.8) > 1e-9);
      run = i >= 11 && margin < 0 && mastery < 0.95 && mean < 0.8 ? run + 1 : 0;
      assert.equal(isPlateau(state), run >= 3);
    }
  });
  const long = updateAll(Array.from({ length: 1000 }, () => 0.3));
  assert.deepEqual([long.run, isPlateau(long)], [255, true], 'a run is stored in one byte');
});

test('updatePlateau starts from scratch after a pause of more than 14 days', () => {
  forAll(masteries({ maxLength: 40 }), masteries({ minLength: 1, maxLength: 40 }), (before, after) => {
    const [first = 0.5, ...rest] = after;
    const old = updateAll(before);
    assert.deepEqual(updateAll(rest, updatePlateau(old, first, 14.001)), updateAll(after));
    const whole = updateAll([...before, ...after]);
    for (const idleDays of [14, -400])
      assert.deepEqual(updateAll(rest, updatePlateau(old, first, idleDays)), whole);
  });
});

test('applyAnswer counts exactly, is deterministic, and the last answer of a skill never gets earlier', () => {
  forAll(fc.array(anyAnswer, { maxLength: 60 }), (list) => {
    const {
      learner,
      skills: [skill],
    } = countAnswers(list);
    assert.deepEqual(countAnswers(list), countAnswers(list));
    assert.equal(learner.attempts, list.length);
    assert.equal(skill.correct, list.filter(({ isCorrect }) => isCorrect).length);
    assert.equal(skill.lastAttemptAt, Math.max(0, ...list.map(({ occurredAt }) => occurredAt)));
  });
});

test('applyAnswer counts a day of a skill once, with its first right answer', () => {
  const right = (day: number) => ({ isCorrect: true, occurredAt: day * dayMs });
  const wrong = (day: number) => ({ ...right(day), isCorrect: false });
  const {
    skills: [skill],
  } = countAnswers([wrong(10), right(10), right(10), wrong(11), right(12)]);
  assert.deepEqual([skill.correctDays, skill.lastCorrectDay], [2, 12]);
  assert.equal(countAnswers([right(10), right(12), right(11)]).skills[0].correctDays, 2, 'a late answer');
});
