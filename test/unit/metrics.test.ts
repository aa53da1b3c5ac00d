import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  computeAuc,
  computeReliability,
  logLossClip,
  measurePredictions,
} from '../../src/domain/base/prediction-metrics.js';

const near = (actual: number | null, expected: number, tolerance = 1e-12): void => {
  assert.ok(actual !== null && Math.abs(actual - expected) <= tolerance, `${actual} is not ${expected}`);
};

test('figures worked out by hand', () => {
  // Right: .9 and .4; wrong: .6 and .2. Three of the four pairs are in order.
  const correct = Uint8Array.of(1, 0, 1, 0);
  const figures = measurePredictions(correct, Float64Array.of(0.9, 0.6, 0.4, 0.2));
  near(figures.auc, 0.75);
  near(figures.rmse, Math.sqrt((0.01 + 0.36 + 0.36 + 0.04) / 4));
  near(figures.logLoss, -(Math.log(0.9) + Math.log(0.4) + Math.log(0.4) + Math.log(0.8)) / 4);
  near(figures.accuracy, 0.5);
  // Each answer has a bin of its own here.
  near(figures.ece, (0.1 + 0.6 + 0.6 + 0.2) / 4);
});

test('a constant prediction ranks nothing and, at the mean, is calibrated', () => {
  const correct = Uint8Array.of(1, 1, 0, 1);
  const figures = measurePredictions(correct, new Float64Array(4).fill(0.75));
  assert.equal(figures.auc, 0.5);
  near(figures.ece, 0);
  near(figures.rmse, Math.sqrt(0.1875));
  assert.equal(figures.accuracy, 0.75);
});

test('a certain prediction that fails costs a bounded amount, one that holds nothing', () => {
  near(measurePredictions(Uint8Array.of(0), Float64Array.of(1)).logLoss, -Math.log(logLossClip));
  near(measurePredictions(Uint8Array.of(1), Float64Array.of(1)).logLoss, 0);
});

test('answers that are all alike have no area under the curve', () => {
  assert.equal(computeAuc(Uint8Array.of(1, 1), Float64Array.of(0.2, 0.3)), null);
  assert.equal(computeAuc(Uint8Array.of(0), Float64Array.of(0.2)), null);
});

test('the bins of the reliability table', () => {
  const correct = Uint8Array.of(1, 0, 1, 1, 0);
  const bins = computeReliability(correct, Float64Array.of(0, 0.24, 0.25, 1, 0.8), 4);
  assert.deepEqual(
    bins.map(({ low, high, answers }) => [low, high, answers]),
    [
      [0, 0.25, 2],
      [0.25, 0.5, 1],
      [0.5, 0.75, 0],
      [0.75, 1, 2],
    ],
    'a bound belongs to the bin above it, 1 to the last',
  );
  near(bins[0]?.predicted ?? null, 0.12);
  assert.equal(bins[0]?.correct, 0.5);
  assert.deepEqual([bins[2]?.predicted, bins[2]?.correct], [null, null]);
  near(bins[3]?.predicted ?? null, 0.9);
});

/** Every pair of a right and a wrong answer. */
function bruteForce(correct: Uint8Array, predictions: Float64Array): number {
  let wins = 0;
  let pairs = 0;
  predictions.forEach((p, i) => {
    predictions.forEach((q, j) => {
      if (correct[i] !== 1 || correct[j] !== 0) return;
      pairs++;
      wins += p > q ? 1 : p === q ? 0.5 : 0;
    });
  });
  return wins / pairs;
}

// Few distinct predictions, so that ties are the rule.
const answers = fc.array(fc.tuple(fc.integer({ min: 0, max: 1 }), fc.integer({ min: 0, max: 20 })), {
  minLength: 1,
  maxLength: 60,
});
const columns = (rows: readonly (readonly [number, number])[]): [Uint8Array, Float64Array] => [
  Uint8Array.from(rows, ([y]) => y),
  Float64Array.from(rows, ([, p]) => p / 20),
];

test('the area under the curve is the share of pairs in order', () => {
  fc.assert(
    fc.property(answers, (rows) => {
      const [correct, predictions] = columns(rows);
      const area = computeAuc(correct, predictions);
      if (area !== null) near(area, bruteForce(correct, predictions));
      else assert.ok(correct.every((y) => y === correct[0]));
    }),
  );
});

test('figures stay within their ranges and do not depend on the order of the answers', () => {
  fc.assert(
    fc.property(answers, (rows) => {
      const figures = measurePredictions(...columns(rows));
      const reversed = measurePredictions(...columns(rows.toReversed()));
      for (const name of ['rmse', 'logLoss', 'accuracy', 'ece'] as const) {
        near(reversed[name], figures[name], 1e-12);
        assert.ok(figures[name] >= 0 && (name === 'logLoss' || figures[name] <= 1));
      }
      assert.equal(reversed.auc, figures.auc);
      const counts = computeReliability(...columns(rows)).map((bin) => bin.answers);
      assert.equal(
        counts.reduce((sum, count) => sum + count),
        rows.length,
      );
    }),
  );
});
