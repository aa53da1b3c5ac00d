import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  computeCalibration,
  newCalibration,
  updateCalibration,
} from '../../src/domain/tracing/calibration.js';
import {
  computeCorrectPerMinute,
  computeEfficiencyIndex,
  computeRapidThreshold,
  computeSkillNorm,
  isRapid,
  isRapidFlagged,
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

test('rapid answers: counts, window and flag are those of the plain list', () => {
  fc.assert(
    fc.property(upTo(60, reportedSeconds), between(1, 10), (times, threshold) => {
      const state = times.reduce((last, time) => updateRapid(last, time, threshold), newRapid);
      const timed = times.filter((time) => time !== null && time <= 3600);
      const last20 = timed.slice(-20).map((time) => isRapid(time, threshold));
      const rapid = last20.filter(Boolean).length;
      assert.equal(state.answers, timed.filter((time) => isRapid(time, threshold)).length);
      assert.equal(state.recentTimed, last20.length);
      assert.equal(state.recent, Number.parseInt(`0${last20.map(Number).join('')}`, 2));
      assert.equal(isRapidFlagged(state), last20.length >= 10 && rapid / last20.length >= 0.3);
    }),
  );
});

test('the rapid threshold is 3 s below 30 timed answers, then between 1 and 10 s', () => {
  assert.equal(computeRapidThreshold({ answers: 29, meanSeconds: 80 }), 3);
  assert.equal(computeRapidThreshold({ answers: 30, meanSeconds: 80 }), 8);
  assert.equal(computeRapidThreshold({ answers: 30, meanSeconds: 2 }), 1);
  assert.equal(isRapid(3, 3), false);
  assert.equal(isRapid(0, 1), true);
  assert.equal(isRapid(null, 3), false);
});

const pacedAnswer = fc.record({
  isCorrect: fc.boolean(),
  time: reportedSeconds,
  rapid: fc.boolean(),
});

test('pace: bounds, and what is not timed or rapid changes nothing', () => {
  fc.assert(
    fc.property(upTo(40, pacedAnswer), (answers) => {
      let state = newPace;
      let timed = 0;
      for (const { isCorrect, time, rapid } of answers) {
        const next = updatePace(state, isCorrect, time, computeSkillNorm(null), rapid);
        const counts = !rapid && time !== null && time > 0 && time <= 3600;
        if (counts) timed++;
        else assert.equal(next, state);
        state = next;
      }
      assert.equal(state.timed, timed);
      assert.ok(Math.abs(state.slowness) <= 1.5 + rounding);
      assert.ok(state.accuracy >= 0 && state.accuracy <= 1 + rounding);
      const index = computeEfficiencyIndex(state, newRapid, computeSkillNorm(null));
      assert.equal(index === null, timed < 3);
      if (index !== null) assert.ok(index >= 0 && index <= 100);
      const pace = computeCorrectPerMinute(state);
      assert.equal(pace === null, timed === 0);
      if (pace !== null) assert.ok(pace >= 0 && pace <= 60);
    }),
  );
});

test('a norm lies between the prior and what was measured, the sd of time never below .2', () => {
  const times = fc.record({
    answers: fc.integer({ min: 0, max: 1e6 }),
    logMean: between(0, 8),
    logM2: between(0, 1e5),
    share: between(0, 1),
  });
  fc.assert(
    fc.property(times, ({ share, ...measured }) => {
      const { logMean, logSd, accuracy } = computeSkillNorm({
        ...measured,
        correct: share * measured.answers,
      });
      const [low, high] = ordered([Math.log(75), measured.logMean]);
      assert.ok(logMean >= low - rounding && logMean <= high + rounding);
      assert.ok(logSd >= 0.2);
      assert.ok(accuracy >= Math.min(0.75, share) - rounding && accuracy <= Math.max(0.75, share) + rounding);
    }),
  );
  assert.deepEqual(computeSkillNorm(null), { logMean: Math.log(75), logSd: 0.6, accuracy: 0.75 });
});

const told = fc.record({ confidence: reportedConfidence, isCorrect: fc.boolean() });
type Told = { confidence: number | null; isCorrect: boolean };
const calibrate = (list: readonly Told[]) =>
  list.reduce((state, one) => updateCalibration(state, one.confidence, one.isCorrect), newCalibration);

test('calibration: exact whole sums in any order, and the figures of the plain list', () => {
  fc.assert(
    fc.property(upTo(60, told), (list) => {
      const state = calibrate(list);
      assert.ok(Object.values(state).every(Number.isInteger));
      assert.deepEqual(calibrate(list.toReversed()), state);
      const gaps = list.flatMap(({ confidence, isCorrect }) =>
        confidence === null ? [] : [(2 * confidence - 1) / 10 - (isCorrect ? 1 : 0)],
      );
      const figures = computeCalibration(state);
      if (gaps.length === 0) return assert.equal(figures, null);
      const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / gaps.length;
      assert.ok(figures !== null);
      assert.ok(Math.abs(figures.bias - mean(gaps)) < rounding);
      assert.ok(Math.abs(figures.brier - mean(gaps.map((gap) => gap * gap))) < rounding);
      if (figures.flag !== null) assert.equal(figures.flag, figures.bias > 0 ? 'over' : 'under');
      if (gaps.length < 10 || Math.abs(figures.bias) < 0.15) assert.equal(figures.flag, null);
    }),
  );
});

test('calibration flags a large and steady bias from ten answers on', () => {
  const flagOf = (answers: number, confidence: number, right: number) =>
    computeCalibration(
      calibrate(Array.from({ length: answers }, (_, i) => ({ confidence, isCorrect: i < right }))),
    )?.flag;
  assert.equal(flagOf(9, 5, 2), null);
  assert.equal(flagOf(10, 5, 2), 'over');
  assert.equal(flagOf(10, 1, 10), 'under');
  assert.equal(flagOf(10, 5, 10), null); // .1 under: too small
  assert.equal(flagOf(10, 4, 5), null); // .2 over with sd .53: may be chance
  assert.equal(flagOf(11, 3, 3), null); // .23 over, at 1.61 standard errors; 1.69 if the sd divided by n
  assert.equal(flagOf(30, 4, 15), 'over'); // the same, no longer chance
});
