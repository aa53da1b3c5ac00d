/** Rapid answers, efficiency and calibration. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
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
  measureTimes,
  missingEfficiencyReason,
  newPace,
  newRapid,
  updatePace,
  updateRapid,
} from '../../src/domain/tracing/response-times.js';
import { computeSum, indices } from '../../src/lists.js';
import { answerLog } from '../support/builders/answer-logs.js';
import {
  between,
  ordered,
  reportedConfidence,
  reportedSeconds,
  rounding,
  upTo,
} from '../support/builders/arbitraries.js';
import { fc, forAll } from '../support/builders/properties.js';

test('updateRapid counts rapid answers and flags 30 % of the last 20 timed answers', () => {
  forAll(upTo(60, reportedSeconds), between(1, 10), (times, threshold) => {
    const state = times.reduce((last, time) => updateRapid(last, time, threshold), newRapid);
    const timed = times.filter((time) => time !== null && time <= 3600);
    const last20 = timed.slice(-20).map((time) => (time ?? 0) < threshold);
    const rapid = last20.filter(Boolean).length;
    assert.deepEqual(state, {
      answers: timed.filter((time) => (time ?? 0) < threshold).length,
      recentTimed: last20.length,
      recent: Number.parseInt(`0${last20.map(Number).join('')}`, 2),
    });
    assert.equal(isRapidFlagged(state), last20.length >= 10 && rapid / last20.length >= 0.3);
  });
});

test('computeRapidThreshold is 3 s below 30 timed answers, then a tenth of the mean, at least 1 s', () => {
  assert.equal(computeRapidThreshold({ answers: 29, meanSeconds: 80 }), 3);
  assert.equal(computeRapidThreshold({ answers: 30, meanSeconds: 80 }), 8);
  assert.equal(computeRapidThreshold({ answers: 30, meanSeconds: 2 }), 1);
  assert.deepEqual([isRapid(3, 3), isRapid(0, 1), isRapid(null, 3)], [false, true, false]);
});

test('updatePace ignores rapid and untimed answers and keeps efficiency within its bounds', () => {
  const answer = fc.record({ isCorrect: fc.boolean(), time: reportedSeconds, rapid: fc.boolean() });
  const norm = computeSkillNorm(null);
  forAll(upTo(40, answer), (answers) => {
    let state = newPace;
    let timed = 0;
    for (const { isCorrect, time, rapid } of answers) {
      const next = updatePace(state, isCorrect, time, norm, rapid);
      if (!rapid && time !== null && time > 0 && time <= 3600) timed++;
      else assert.equal(next, state);
      state = next;
    }
    assert.equal(state.timed, timed);
    assert.ok(Math.abs(state.slowness) <= 1.5 + rounding);
    assert.ok(state.accuracy >= 0 && state.accuracy <= 1 + rounding);
    const index = computeEfficiencyIndex(state, newRapid, norm);
    assert.equal(index === null, timed < 3);
    if (index !== null) assert.ok(index >= 0 && index <= 100);
    assert.equal(missingEfficiencyReason(state, newRapid), timed < 3 ? 'too_few_times' : null);
    const perMinute = computeCorrectPerMinute(state);
    assert.equal(perMinute === null, timed === 0);
    if (perMinute !== null) assert.ok(perMinute >= 0 && perMinute <= 60);
  });
});

test('computeSkillNorm is between the prior and the measured times, with an sd of at least .2', () => {
  const times = fc.record({
    answers: fc.integer({ min: 0, max: 1e6 }),
    logMean: between(0, 8),
    logM2: between(0, 1e5),
    share: between(0, 1),
  });
  forAll(times, ({ share, ...measured }) => {
    const norm = computeSkillNorm({ ...measured, correct: share * measured.answers });
    const [low, high] = ordered([Math.log(75), measured.logMean]);
    const [least, most] = ordered([0.75, share]);
    assert.ok(norm.logMean >= low - rounding && norm.logMean <= high + rounding);
    assert.ok(norm.logSd >= 0.2);
    assert.ok(norm.accuracy >= least - rounding && norm.accuracy <= most + rounding);
  });
  assert.deepEqual(computeSkillNorm(null), { logMean: Math.log(75), logSd: 0.6, accuracy: 0.75 });
});

test('measureTimes counts timed answers that are not rapid', () => {
  const answers = [
    ...indices(30).map((i) => ({ skill: 0, correct: i < 12, seconds: 50 })),
    { skill: 0, correct: true, seconds: 1 },
    { skill: 0, correct: true, seconds: 7200 },
    { skill: 0, correct: true },
  ];
  const [times] = measureTimes(answerLog(1, [answers]));
  assert.deepEqual([times?.answers, times?.correct], [30, 12]);
  assert.equal(computeSkillNorm(times ?? null).accuracy, (15 + 12) / 50);
});

/** Right answers in ten, and seconds per answer. */
const kinds = {
  fastAccurate: { right: 9, seconds: 15 },
  slowAccurate: { right: 9, seconds: 90 },
  average: { right: 7, seconds: 40 },
  fastWrong: { right: 4, seconds: 15 },
  slowWrong: { right: 4, seconds: 90 },
  verySlow: { right: 7, seconds: 600 },
  guesser: { right: 2, seconds: 2 },
};

test('computeEfficiencyIndex ranks kinds of learners, before and after a fit', () => {
  const answersOf = ({ right, seconds }: (typeof kinds)['average']) =>
    indices(40).map((i) => {
      const varied = seconds * Math.exp(0.3 * Math.cos(2.3 * i));
      return { skill: 0, correct: (7 * i) % 10 < right, seconds: varied };
    });
  const classmates = indices(30).map((i) => ({
    right: Math.round(7.2 + 1.5 * Math.sin(i)),
    seconds: 50 * Math.exp(0.4 * Math.cos(2.3 * i)),
  }));
  const measure = (learners: readonly (typeof kinds)['average'][]) =>
    measureTimes(answerLog(1, learners.map(answersOf)))[0] ?? null;
  for (const times of [null, measure(Object.values(kinds)), measure(classmates)]) {
    const [norm, threshold] = [computeSkillNorm(times), computeRapidThreshold(times)];
    const practise = (kind: keyof typeof kinds) => {
      let [pace, rapid] = [newPace, newRapid];
      for (const { correct, seconds } of answersOf(kinds[kind])) {
        pace = updatePace(pace, correct, seconds, norm, isRapid(seconds, threshold));
        rapid = updateRapid(rapid, seconds, threshold);
      }
      return { pace, rapid, index: computeEfficiencyIndex(pace, rapid, norm) };
    };
    const index = (kind: keyof typeof kinds): number => practise(kind).index ?? assert.fail(kind);
    assert.ok(index('fastAccurate') >= 75, `${index('fastAccurate')}`);
    for (const kind of ['slowAccurate', 'average'] as const)
      assert.ok(index(kind) >= 40 && index(kind) <= 65, `${kind}: ${index(kind)}`);
    assert.ok(index('fastWrong') <= 45);
    assert.ok(index('fastWrong') < Math.min(index('slowAccurate'), index('average')));
    assert.ok(index('slowWrong') < index('fastWrong') && index('slowWrong') < index('verySlow'));
    assert.ok(index('verySlow') < 40, `${index('verySlow')}`);
    const { pace, rapid, index: none } = practise('guesser');
    assert.deepEqual([none, missingEfficiencyReason(pace, rapid)], [null, 'rapid_answers']);
    assert.ok(isRapidFlagged(rapid));
  }
});

interface RatedAnswer {
  readonly confidence: number | null;
  readonly isCorrect: boolean;
}

const calibrate = (list: readonly RatedAnswer[]) =>
  list.reduce((state, one) => updateCalibration(state, one.confidence, one.isCorrect), newCalibration);

test('computeCalibration returns bias and Brier score of the answers with a confidence, in any order', () => {
  const answer = fc.record({ confidence: reportedConfidence, isCorrect: fc.boolean() });
  forAll(upTo(60, answer), (list) => {
    const state = calibrate(list);
    assert.ok(Object.values(state).every(Number.isInteger));
    assert.deepEqual(calibrate(list.toReversed()), state);
    const gaps = list.flatMap(({ confidence, isCorrect }) =>
      confidence === null ? [] : [(2 * confidence - 1) / 10 - (isCorrect ? 1 : 0)],
    );
    const found = computeCalibration(state);
    if (gaps.length === 0) return assert.equal(found, null);
    const mean = (values: number[]) => computeSum(values) / gaps.length;
    assert.ok(found !== null);
    assert.ok(Math.abs(found.bias - mean(gaps)) < rounding);
    assert.ok(Math.abs(found.brier - mean(gaps.map((gap) => gap * gap))) < rounding);
    if (found.flag !== null) assert.equal(found.flag, found.bias > 0 ? 'over' : 'under');
  });
});

test('computeCalibration flags a large and significant bias from ten answers on', () => {
  const cases: readonly [answers: number, confidence: number, right: number, flag: string | null][] = [
    [9, 5, 2, null],
    [10, 5, 2, 'over'],
    [10, 1, 10, 'under'],
    // A bias of -.1 is too small, and one of .2 with an sd of .53 may be chance.
    [10, 5, 10, null],
    [10, 4, 5, null],
    [30, 4, 15, 'over'],
    // 1.61 standard errors; it would be 1.69 if the sd divided by n.
    [11, 3, 3, null],
  ];
  for (const [answers, confidence, right, flag] of cases) {
    const list = indices(answers).map((i) => ({ confidence, isCorrect: i < right }));
    assert.equal(computeCalibration(calibrate(list))?.flag, flag, `${answers} answers, ${right} right`);
  }
});
