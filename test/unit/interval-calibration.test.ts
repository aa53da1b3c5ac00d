/** Recalibration of the intervals of the share by outcomes of recent forecasts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accuracyConstants } from '../../src/domain/base/accuracy-constants.js';
import { dayMs } from '../../src/domain/base/common.js';
import { normalQuantile } from '../../src/domain/base/normal-distribution.js';
import {
  calibrateIntervals,
  minCalibrationLearners,
  minCalibrationOutcomes,
} from '../../src/domain/fit/accuracy/calibrate-intervals.js';
import {
  computeAccuracyInterval,
  computeIntervalReach,
  computeOutcomePosition,
  initialAccuracyModel,
} from '../../src/domain/prediction/accuracy-model.js';
import {
  type ForecastOutcome,
  findIntervalFactors,
  type IntervalCalibration,
} from '../../src/domain/prediction/interval-calibration.js';
import { scoreForecasts } from '../../src/lab/backtest/forecasts.js';
import { indices } from '../../src/lists.js';
import { fc, forAll } from '../support/builders/properties.js';
import { createNormal, seeded } from '../support/builders/random.js';

const now = Date.UTC(2025, 0, 1);
const edge = normalQuantile(0.9);
const { low, high } = accuracyConstants.calibration.factor;

interface OutcomeSource {
  readonly seed: number;
  /** Mean and standard deviation in those of the forecasts. */
  readonly mean?: number;
  readonly sd?: number;
  readonly history?: number;
  readonly horizon?: number;
  readonly ageDays?: number;
  readonly count?: number;
  readonly learners?: number;
}

function drawOutcomes(source: OutcomeSource): ForecastOutcome[] {
  const {
    seed,
    mean = 0,
    sd = 1,
    history = 30,
    horizon = 30,
    ageDays = 5,
    count = 600,
    learners = 150,
  } = source;
  const normal = createNormal(seeded(seed));
  return indices(count).map((i) => ({
    learner: `u${i % learners}`,
    history,
    horizon,
    position: (mean + sd * normal()) / edge,
    completedAt: now - ageDays * dayMs,
  }));
}

const calibrate = (outcomes: readonly ForecastOutcome[]): IntervalCalibration =>
  calibrateIntervals(outcomes, now) ?? assert.fail('enough outcomes');

const isInside = (position: number, { below, above }: { below: number; above: number }): boolean =>
  position >= -below && position <= above;

test('calibrateIntervals returns null for few outcomes or learners, and ignores later outcomes', () => {
  const enough = drawOutcomes({ seed: 1, count: minCalibrationOutcomes, learners: minCalibrationLearners });
  const { outcomes, learners, at } = calibrate(enough);
  assert.deepEqual([outcomes, learners, at], [minCalibrationOutcomes, minCalibrationLearners, now]);
  assert.equal(calibrateIntervals(enough.slice(1), now), null);
  assert.equal(
    calibrateIntervals(drawOutcomes({ seed: 1, learners: minCalibrationLearners - 1 }), now),
    null,
  );
  const later = drawOutcomes({ seed: 2, sd: 5, ageDays: -1 });
  assert.deepEqual(calibrate([...enough, ...later]), calibrate(enough));
});

test('calibrateIntervals moves the interval to the side of a shift and follows the spread', () => {
  const at = { history: 30, horizon: 30 };
  const usual = findIntervalFactors(calibrate(drawOutcomes({ seed: 3 })), at);
  for (const factor of [usual.below, usual.above]) assert.ok(Math.abs(factor - 1) < 0.1, `${factor}`);
  const shifted = findIntervalFactors(calibrate(drawOutcomes({ seed: 4, mean: 0.8 })), at);
  assert.ok(shifted.above > 1.2 && shifted.below < 0.9, JSON.stringify(shifted));
  for (const sd of [0.6, 1, 1.5]) {
    const factors = findIntervalFactors(calibrate(drawOutcomes({ seed: 5, sd })), at);
    const covered = drawOutcomes({ seed: 6, sd }).filter(({ position }) => isInside(position, factors));
    assert.ok(Math.abs(covered.length / 600 - 0.8) < 0.06, `sd ${sd}: ${covered.length} of 600`);
  }
});

test('calibrateIntervals corrects a band by its learners and shrinks it to the whole', () => {
  const rest = drawOutcomes({ seed: 7, history: 5 });
  const widthOf = (learners: number): number => {
    const wide = { seed: 8, sd: 1.8, history: 500, count: 4 * learners, learners };
    const { below, above } = findIntervalFactors(calibrate([...rest, ...drawOutcomes(wide)]), {
      history: 500,
      horizon: 30,
    });
    return below + above;
  };
  const [few, many] = [widthOf(5), widthOf(150)];
  assert.ok(few < 2.6 && many > 3 && many < 3.9, `${few}, ${many}`);
  const all = calibrate([...rest, ...drawOutcomes({ seed: 8, sd: 1.8, history: 500 })]);
  const own = findIntervalFactors(all, { history: 5, horizon: 30 });
  assert.ok(own.below + own.above < 2.5, JSON.stringify(own));
});

test('calibrateIntervals gives recent outcomes more weight and drops old ones', () => {
  const widthAfter = (ageDays: number): number => {
    const outcomes = [...drawOutcomes({ seed: 9 }), ...drawOutcomes({ seed: 10, sd: 2, ageDays })];
    return findIntervalFactors(calibrate(outcomes), { history: 30, horizon: 30 }).above;
  };
  assert.ok(widthAfter(5) > widthAfter(60) + 0.1);
  assert.equal(
    widthAfter(181),
    findIntervalFactors(calibrate(drawOutcomes({ seed: 9 })), {
      history: 30,
      horizon: 30,
    }).above,
  );
});

test('calibrateIntervals returns limited factors for any outcomes, in any order', () => {
  const anyOutcome: fc.Arbitrary<ForecastOutcome> = fc.record({
    learner: fc.integer({ min: 0, max: 60 }),
    history: fc.integer({ min: 0, max: 5000 }),
    horizon: fc.integer({ min: 1, max: 365 }),
    position: fc.oneof(fc.double(), fc.double({ min: -3, max: 3, noNaN: true })),
    completedAt: fc.integer({ min: now - 400 * dayMs, max: now + dayMs }),
  });
  const random = seeded(11);
  forAll(fc.array(anyOutcome, { minLength: 400, maxLength: 500 }), (outcomes) => {
    const calibration = calibrateIntervals(outcomes, now);
    if (calibration === null) return;
    for (const { below, above } of calibration.cells)
      assert.ok([below, above].every((factor) => factor >= low && factor <= high));
    const keyed = outcomes.map((outcome) => ({ outcome, key: random() })).sort((a, b) => a.key - b.key);
    const shuffled = keyed.map(({ outcome }) => outcome);
    assert.deepEqual(calibrateIntervals(shuffled, now), calibration);
  });
});

test('computeOutcomePosition is -1 and 1 at the ends of the 80 % interval', () => {
  const forecast = { expected: 0.6, sd: 0.08, history: 30, horizon: 30 };
  const ends = computeAccuracyInterval(initialAccuracyModel, forecast, 40, 0.8);
  const reach = computeIntervalReach(initialAccuracyModel, forecast, 0.8);
  const positions = [ends.low, ends.high].map((share) => computeOutcomePosition(forecast, reach, 40, share));
  for (const [i, end] of [-1, 1].entries()) assert.ok(Math.abs((positions[i] as number) - end) < 1e-9);
});

const begin = Date.UTC(2024, 0, 1);
const weeks = 40;

interface ClassSource {
  readonly seed: number;
  /** Standard deviation of a week's shared deviation, and a lasting shift. */
  readonly weekSd: number;
  readonly shift?: number;
  readonly flippedFrom?: number;
}

/** Forecasts of 7 days for a class of 60: the deviation of a week is the same for all learners. */
function forecastClass({ seed, weekSd, shift = 0, flippedFrom = weeks }: ClassSource) {
  const normal = createNormal(seeded(seed));
  const byWeek = indices(weeks).map(() => shift + weekSd * normal());
  return byWeek.flatMap((shared, week) =>
    indices(60).map((learner) => {
      const answers = 40;
      const forecast = { expected: 0.6, sd: 0.08, history: 10 + 8 * week, horizon: 7 };
      const angle = Math.asin(Math.sqrt(0.6)) + 0.11 * (shared + normal());
      const share = Math.sin(Math.min(Math.max(angle, 0), Math.PI / 2)) ** 2;
      const right = Math.round(answers * (week < flippedFrom ? share : 1 - share));
      const one = { learner, history: forecast.history, horizon: 7, span: 7, answers, right };
      return {
        ...{ fold: 1, accuracy: initialAccuracyModel, forecast, trend: 'constant' as const },
        one: { ...one, at: begin + 7 * week * dayMs },
        expected: { served: 0.6, no_change: 0.6, population: 0.6 },
      };
    }),
  );
}

test('A class with shared good and bad weeks, or a lasting shift, is covered after recalibration', async () => {
  for (const source of [
    { seed: 12, weekSd: 0.8 },
    { seed: 13, weekSd: 0.2, shift: 0.8 },
  ]) {
    // The first ten weeks teach the calibration.
    const later = (await scoreForecasts(forecastClass(source))).slice(600);
    const calibrated = later.filter(({ inside }) => inside[1]);
    const uncalibrated = later.filter((one) => (one.uncalibrated ?? one).inside[1]);
    const [before, after] = [uncalibrated, calibrated].map(({ length }) => length / later.length) as [
      number,
      number,
    ];
    assert.ok(before < 0.75 && Math.abs(after - 0.8) < 0.04, `${before}, ${after}`);
  }
});

test('scoreForecasts recalibrates only by horizons that ended before the forecast', async () => {
  const flippedFrom = 20;
  const source = { seed: 14, weekSd: 0.4 };
  const widths = async (changes: Partial<ClassSource>): Promise<number[]> =>
    (await scoreForecasts(forecastClass({ ...source, ...changes }))).map(({ width }) => width);
  const [original, changed] = [await widths({}), await widths({ flippedFrom })];
  const known = 60 * (flippedFrom + 1);
  assert.deepEqual(changed.slice(0, known), original.slice(0, known));
  assert.notDeepEqual(changed.slice(known), original.slice(known));
});
