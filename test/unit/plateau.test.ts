import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  computePlateauSlope,
  computeSmoothedMastery,
  isPlateau,
  newPlateau,
  type PlateauState,
  updatePlateau,
} from '../../src/domain/tracing/plateau.js';

const thousandths = (min: number, max: number) => fc.integer({ min, max }).map((step) => step / 1000);

/** Lists of all lengths allowed: without `size`, generated ones stay near the shortest. */
const masteries = (lengths: { minLength?: number; maxLength: number }) =>
  fc.array(thousandths(1, 999), { ...lengths, size: 'max' });

const feed = (list: readonly number[], from: PlateauState = newPlateau): PlateauState =>
  list.reduce((state, mastery) => updatePlateau(state, mastery, 0), from);

const sumOf = <T>(list: readonly T[], value: (one: T) => number): number =>
  list.reduce((sum, one) => sum + value(one), 0);

/** The same regression from the whole list: weights .9^age, numbers 0, -1, -2, ... back from the last attempt. */
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

function agrees(list: readonly number[], state: PlateauState): void {
  const { slope, squaredError, mean } = regress(list);
  const trend = computePlateauSlope(state);
  assert.ok(trend !== null);
  assert.ok(Math.abs(trend.slope - slope) < 1e-9, `slope ${trend.slope} is not ${slope}`);
  assert.ok(Math.abs(trend.standardError ** 2 - squaredError) < 1e-9, 'squared error');
  assert.ok(Math.abs((computeSmoothedMastery(state) ?? Number.NaN) - mean) < 1e-9, 'smoothed mastery');
}

test('the state equals a weighted regression over the whole list', () => {
  fc.assert(fc.property(masteries({ minLength: 3, maxLength: 80 }), (list) => agrees(list, feed(list))));
});

test('the state equals it past the attempts up to which they are counted', () => {
  fc.assert(
    fc.property(masteries({ minLength: 395, maxLength: 900 }), (list) => {
      const state = feed(list);
      assert.ok(state.attempts <= 400);
      agrees(list, state);
    }),
    { numRuns: 10 },
  );
});

test('the flag is the test, held on three attempts in a row', () => {
  const flat = fc
    .integer({ min: 100, max: 850 })
    .chain((low) => fc.array(thousandths(low, low + 120), { maxLength: 40, size: 'max' }));
  fc.assert(
    fc.property(fc.oneof(flat, masteries({ maxLength: 40 })), (list) => {
      let state = newPlateau;
      let run = 0;
      for (const [i, mastery] of list.entries()) {
        state = updatePlateau(state, mastery, 0);
        const { slope, squaredError, mean } = regress(list.slice(0, i + 1));
        const margin = slope + 1.2816 * Math.sqrt(squaredError) - 0.02;
        if (i >= 11) fc.pre(Math.abs(margin) > 1e-9 && Math.abs(mean - 0.8) > 1e-9);
        run = i >= 11 && margin < 0 && mastery < 0.95 && mean < 0.8 ? run + 1 : 0;
        assert.equal(isPlateau(state), run >= 3);
        if (i < 13) assert.equal(isPlateau(state), false);
      }
    }),
    { numRuns: 400 },
  );
});

test('no slope below three attempts, no mean before the first', () => {
  assert.equal(computeSmoothedMastery(newPlateau), null);
  for (const list of [[], [0.5], [0.5, 0.6]]) assert.equal(computePlateauSlope(feed(list)), null);
});

test('a pause of more than 14 days starts anew, a shorter one and a late answer do not', () => {
  fc.assert(
    fc.property(masteries({ maxLength: 40 }), masteries({ minLength: 1, maxLength: 40 }), (before, after) => {
      const [first = 0.5, ...rest] = after;
      const old = feed(before);
      assert.deepEqual(feed(rest, updatePlateau(old, first, 14.001)), feed(after));
      for (const idleDays of [14, -400]) {
        assert.deepEqual(feed(rest, updatePlateau(old, first, idleDays)), feed([...before, ...after]));
      }
    }),
  );
});

test('the run of a long plateau fits a byte', () => {
  const state = feed(Array.from({ length: 1000 }, () => 0.3));
  assert.equal(state.run, 255);
  assert.equal(isPlateau(state), true);
});
