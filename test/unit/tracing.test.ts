import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type BktParameters,
  defaultParameters,
  fitBounds,
  guessSlipMargin,
} from '../../src/domain/base/bkt-parameters.js';
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
import { newCalibration, updateCalibration } from '../../src/domain/tracing/calibration.js';
import { newPlateau, updatePlateau } from '../../src/domain/tracing/plateau.js';
import {
  computeSkillNorm,
  isRapid,
  newPace,
  newRapid,
  updatePace,
  updateRapid,
} from '../../src/domain/tracing/response-times.js';
import {
  between,
  ordered,
  reportedConfidence,
  reportedSeconds,
  rounding,
  upTo,
} from '../support/builders/arbitraries.js';

const parameters: fc.Arbitrary<BktParameters> = fc
  .record({
    pInit: between(0.01, 0.98),
    pLearn: between(0.001, 0.9),
    pGuess: between(0.01, 0.5),
    pSlip: between(0.005, 0.5),
    pForget: between(0, 0.1),
  })
  .filter(({ pGuess, pSlip }) => 1 - pSlip - pGuess >= guessSlipMargin);
const scale = between(0, 1);
const difficulty = between(-6, 6);
const mastery = between(0, 1);
const evidence = fc.record({ weight: between(0, 1), confidence: reportedConfidence });

test('one answer: bounds, and a right answer never lowers mastery, a wrong one never raises it', () => {
  fc.assert(
    fc.property(
      parameters,
      mastery,
      fc.boolean(),
      difficulty,
      scale,
      evidence,
      (skill, before, isCorrect, b, k, rest) => {
        const shift = computeDifficultyShift(skill, b, k);
        const { pCorrect, posterior, masteryAfter } = traceAnswer(
          skill,
          before,
          isCorrect,
          shift,
          true,
          rest,
        );
        assert.ok(masteryAfter >= 0.001 && masteryAfter <= 0.999);
        assert.ok(pCorrect > 0 && pCorrect < 1);
        assert.ok(posterior >= 0 && posterior <= 1);
        if (isCorrect) assert.ok(masteryAfter >= Math.min(before, 0.999) - rounding);
        else assert.ok(masteryAfter <= Math.max(before, 0.001));
      },
    ),
    { numRuns: 2000 },
  );
});

test('guess and slip of 0 are evidence that cannot be outdone, not an error', () => {
  const certain = { ...defaultParameters, pGuess: 0, pSlip: 0, pForget: 0 };
  assert.equal(traceAnswer(certain, 0.5, true).posterior, 1);
  assert.equal(traceAnswer(certain, 0.5, false).posterior, 0);
});

test('without the guard a wrong answer raises mastery below P*, and only there; forgetting lowers the limit', () => {
  fc.assert(
    fc.property(parameters, between(0.001, 0.999), (skill, before) => {
      fc.pre(Math.abs(before - pStar(skill)) > 1e-9);
      const after = (pForget: number) =>
        traceAnswer({ ...skill, pForget }, before, false, 0, false).masteryAfter;
      if (before < pStar(skill)) assert.ok(after(0) >= before);
      else for (const pForget of [0, skill.pForget]) assert.ok(after(pForget) <= before);
    }),
  );
});

test('with the pForget of mostForget right answers lead to its mastery, with more to less', () => {
  fc.assert(
    fc.property(parameters, between(0.5, 0.99), (skill, mastery) => {
      const most = computeMaxForget(skill, mastery);
      const after = (before: number, pForget: number): number =>
        traceAnswer({ ...skill, pForget }, before, true, 0, false).masteryAfter;
      let reached = skill.pInit;
      for (let i = 0; i < 1000; i++) reached = after(reached, most);
      fc.pre(most + skill.pLearn < 0.99 && Math.abs(after(reached, most) - reached) < 1e-9);
      assert.ok(Math.abs(reached - mastery) < 1e-3, `${reached}`);
      assert.ok(after(mastery, most + 1e-4) < mastery && after(mastery, most - 1e-4) > mastery);
    }),
  );
});

test('the evidence weight applies to forgetting as to learning, and pForget 0 is the same bit for bit', () => {
  fc.assert(
    fc.property(parameters, mastery, fc.boolean(), between(0, 1), (skill, before, isCorrect, weight) => {
      const step = traceAnswer(skill, before, isCorrect, 0, false, { weight });
      const learned = (1 - step.posterior) * skill.pLearn * weight;
      const expected = step.posterior - step.posterior * skill.pForget * weight + learned;
      assert.ok(Math.abs(step.masteryAfter - Math.min(Math.max(expected, 0.001), 0.999)) <= rounding);
      const { posterior, masteryAfter } = traceAnswer({ ...skill, pForget: 0 }, before, isCorrect, 0, false);
      const plain = posterior + (1 - posterior) * skill.pLearn;
      assert.equal(masteryAfter, Math.min(Math.max(plain, 0.001), 0.999));
    }),
  );
});

test('mastery after an answer grows with mastery before it', () => {
  fc.assert(
    fc.property(
      parameters,
      fc.tuple(mastery, mastery).map(ordered),
      fc.boolean(),
      difficulty,
      (skill, [low, high], isCorrect, b) => {
        const shift = computeDifficultyShift(skill, b, 0.5);
        const after = (before: number) => traceAnswer(skill, before, isCorrect, shift).masteryAfter;
        assert.ok(after(low) <= after(high) + rounding);
      },
    ),
  );
});

test('the harder the question, the more mastery after any answer, and the lower the chance', () => {
  fc.assert(
    fc.property(
      parameters,
      mastery,
      fc.boolean(),
      fc.tuple(difficulty, difficulty).map(ordered),
      scale,
      (skill, before, isCorrect, [easy, hard], k) => {
        const on = (b: number) => traceAnswer(skill, before, isCorrect, computeDifficultyShift(skill, b, k));
        assert.ok(on(easy).masteryAfter <= on(hard).masteryAfter + rounding);
        assert.ok(on(easy).pCorrect >= on(hard).pCorrect - rounding);
      },
    ),
    { numRuns: 1000 },
  );
});

test('on any question 1 - slip > guess, inside the bounds in force where the skill is', () => {
  fc.assert(
    fc.property(parameters, difficulty, scale, (skill, b, k) => {
      const shift = computeDifficultyShift(skill, b, k);
      assert.ok(Math.abs(shift) <= 3 * k && shift * b >= 0);
      const { pGuess, pSlip } = shiftGuessSlip(skill, shift);
      assert.ok(1 - pSlip > pGuess);
      for (const [value, own, { low, high }] of [
        [pGuess, skill.pGuess, fitBounds.itemGuess],
        [pSlip, skill.pSlip, fitBounds.itemSlip],
      ] as const) {
        assert.ok(value >= Math.min(low, own) - rounding && value <= Math.max(high, own) + rounding);
      }
    }),
  );
});

test('no difficulty, or one that does not count, is plain BKT bit for bit', () => {
  fc.assert(
    fc.property(parameters, mastery, fc.boolean(), difficulty, (skill, before, isCorrect, b) => {
      const { pGuess, pSlip } = shiftGuessSlip(skill, 0);
      assert.deepEqual([pGuess, pSlip], [skill.pGuess, skill.pSlip]);
      const plain = traceAnswer(skill, before, isCorrect);
      for (const shift of [computeDifficultyShift(skill, 0, 0.5), computeDifficultyShift(skill, b, 0)]) {
        assert.ok(Object.is(shift, 0));
        assert.deepEqual(traceAnswer(skill, before, isCorrect, shift), plain);
      }
    }),
  );
});

test('forgetting: a day of grace exactly, then down with time, never below the prior', () => {
  fc.assert(
    fc.property(
      between(0.01, 0.98),
      between(0.001, 0.999),
      fc.integer({ min: 0, max: 60 }),
      fc.tuple(between(0, 4000), between(0, 4000)).map(ordered),
      (pInit, stored, correctDays, [sooner, later]) => {
        const skill = { mastery: stored, correctDays, lastAttemptAt: 5e11, attempts: 3 };
        const at = (days: number) => computeEffectiveMastery(pInit, skill, 5e11 + days * dayMs);
        for (const days of [-400, 0, 0.5, 1]) assert.equal(at(days), stored);
        assert.ok(at(later) <= at(sooner));
        assert.ok(at(later) >= Math.min(stored, pInit) && at(later) <= stored);
        if (stored > pInit + 0.01)
          assert.ok(computeEffectiveMastery(pInit, skill, 5e11 + dayMs + 1) < stored);
      },
    ),
  );
});

test('a skill without attempts stands at the prior in force', () => {
  const skill = { mastery: 0.3, correctDays: 0, lastAttemptAt: 0, attempts: 0 };
  assert.equal(computeEffectiveMastery(0.42, skill, 1e12), 0.42);
});

test('the half-life grows with days of right answers, from 30 to 365 days', () => {
  const days = Array.from({ length: 3000 }, (_, correctDays) => computeHalfLife(correctDays));
  assert.deepEqual([days[0], days[1], days[3], days.at(-1)], [30, 30, 60, 365]);
  assert.ok(days.every((value, i) => i === 0 || value >= (days[i - 1] ?? 0)));
});

const start = {
  mastery: 0.3,
  attempts: 0,
  correctDays: 1,
  lastAttemptAt: 0,
  plateau: newPlateau,
  rapid: newRapid,
  pace: newPace,
  calibration: newCalibration,
};
const answer = fc.record({
  isCorrect: fc.boolean(),
  idleDays: between(-2, 40),
  b: difficulty,
  time: reportedSeconds,
  confidence: reportedConfidence,
});
type TracedAnswer = typeof answer extends fc.Arbitrary<infer One> ? One : never;

function trace(
  state: typeof start,
  { isCorrect, idleDays, b, time, confidence }: TracedAnswer,
): typeof start {
  const now = state.lastAttemptAt + idleDays * dayMs;
  const before = computeEffectiveMastery(defaultParameters.pInit, state, now);
  const shift = computeDifficultyShift(defaultParameters, b, 0.5);
  const { masteryAfter } = traceAnswer(defaultParameters, before, isCorrect, shift);
  return {
    mastery: masteryAfter,
    attempts: state.attempts + 1,
    correctDays: state.correctDays + (isCorrect ? 1 : 0),
    lastAttemptAt: Math.max(state.lastAttemptAt, now),
    plateau: updatePlateau(state.plateau, masteryAfter, idleDays),
    rapid: updateRapid(state.rapid, time, 3),
    pace: updatePace(state.pace, isCorrect, time, computeSkillNorm(null), isRapid(time, 3)),
    calibration: updateCalibration(state.calibration, confidence, isCorrect),
  };
}

test('a replay, also one that starts from a stored state, gives the same states bit for bit', () => {
  fc.assert(
    fc.property(upTo(60, answer), fc.nat({ max: 60 }), (answers, stop) => {
      const stored = JSON.stringify(answers.slice(0, stop).reduce(trace, start));
      const resumed = answers.slice(stop).reduce(trace, JSON.parse(stored));
      assert.deepEqual(resumed, answers.reduce(trace, start));
    }),
  );
});
