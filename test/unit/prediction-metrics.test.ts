import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  computeReliability,
  logLossClip,
  measurePredictions,
} from '../../src/domain/base/prediction-metrics.js';
import { estimateAuc } from '../../src/lab/evaluate/auc.js';
import { estimateIntervals, figureResamples, seed } from '../../src/lab/evaluate/bootstrap.js';
import { computeSum, indices } from '../../src/lists.js';
import { createSeededRandom } from '../../src/seeded-random.js';
import { fc, forAll } from '../support/builders/properties.js';

function assertNear(actual: number | null | undefined, expected: number): void {
  assert.ok(typeof actual === 'number' && Math.abs(actual - expected) <= 1e-12, `${actual}, not ${expected}`);
}

const measure = (correct: number[], predictions: number[]) =>
  measurePredictions(Uint8Array.from(correct), Float64Array.from(predictions));

test('measurePredictions returns metrics as computed by hand', () => {
  const metrics = measure([1, 0, 1, 0], [0.9, 0.6, 0.4, 0.2]);
  assertNear(metrics.rmse, Math.sqrt((0.01 + 0.36 + 0.36 + 0.04) / 4));
  assertNear(metrics.logLoss, -(Math.log(0.9) + Math.log(0.4) + Math.log(0.4) + Math.log(0.8)) / 4);
  assertNear(metrics.accuracy, 0.5);
  // Each answer is in a separate bin.
  assertNear(metrics.ece, (0.1 + 0.6 + 0.6 + 0.2) / 4);
  const { ece, rmse, accuracy } = measure([1, 1, 0, 1], [0.75, 0.75, 0.75, 0.75]);
  assert.equal(accuracy, 0.75, 'the mean as prediction');
  assertNear(ece, 0);
  assertNear(rmse, Math.sqrt(0.1875));
});

test('measurePredictions limits the log loss of a certain prediction', () => {
  assertNear(measure([0], [1]).logLoss, -Math.log(logLossClip));
  assertNear(measure([1], [1]).logLoss, 0);
});

test('computeReliability puts a prediction at a limit into the bin above, and 1 into the last bin', () => {
  const bins = computeReliability(Uint8Array.of(1, 0, 1, 1, 0), Float64Array.of(0, 0.24, 0.25, 1, 0.8), 4);
  assert.deepEqual(
    bins.map(({ low, high, answers, correct }) => [low, high, answers, correct]),
    [
      [0, 0.25, 2, 0.5],
      [0.25, 0.5, 1, 1],
      [0.5, 0.75, 0, null],
      [0.75, 1, 2, 0.5],
    ],
  );
  assertNear(bins[0]?.predicted, 0.12);
  assert.equal(bins[2]?.predicted, null);
  assertNear(bins[3]?.predicted, 0.9);
});

/** Share of the pairs of a right and a wrong answer with predictions in order; a tie counts half. */
function countPairs(rows: readonly (readonly [number, number])[]): number | null {
  const scores = rows.flatMap(([right, p]) =>
    rows.flatMap(([wrong, q]) => (right === 1 && wrong === 0 ? [p > q ? 1 : p === q ? 0.5 : 0] : [])),
  );
  return scores.length === 0 ? null : scores.reduce((sum, score) => sum + score, 0) / scores.length;
}

// Few distinct predictions, for many ties.
const row = fc.tuple(fc.integer({ min: 0, max: 1 }), fc.integer({ min: 0, max: 20 }));
const answers = fc.array(row, { minLength: 1, maxLength: 60 });
const columns = (rows: readonly (readonly [number, number])[]): [Uint8Array, Float64Array] => [
  Uint8Array.from(rows, ([isCorrect]) => isCorrect),
  Float64Array.from(rows, ([, p]) => p / 20),
];

const estimate = ([correct, predictions]: [Uint8Array, Float64Array]): number | null =>
  estimateAuc(correct, predictions, new Uint32Array(correct.length)).auc;

test('estimateAuc returns the share of ordered pairs, and null if all answers are alike', () => {
  // Three of the four pairs of a right and a wrong answer are in order.
  assertNear(estimate([Uint8Array.of(1, 0, 1, 0), Float64Array.of(0.9, 0.6, 0.4, 0.2)]), 0.75);
  assertNear(estimate([Uint8Array.of(1, 1, 0, 1), Float64Array.of(0.75, 0.75, 0.75, 0.75)]), 0.5);
  forAll(answers, (rows) => {
    const [auc, expected] = [estimate(columns(rows)), countPairs(rows)];
    const reversed = estimate(columns(rows.toReversed()));
    if (expected === null) return assert.deepEqual([auc, reversed], [null, null]);
    assertNear(auc, expected);
    assertNear(reversed, expected);
  });
});

test('measurePredictions returns metrics in their ranges that do not depend on the order of the answers', () => {
  forAll(answers, (rows) => {
    const metrics = measurePredictions(...columns(rows));
    const reversed = measurePredictions(...columns(rows.toReversed()));
    for (const name of ['rmse', 'logLoss', 'accuracy', 'ece'] as const) {
      assertNear(reversed[name], metrics[name]);
      assert.ok(metrics[name] >= 0 && (name === 'logLoss' || metrics[name] <= 1));
    }
    const counts = computeReliability(...columns(rows)).map((bin) => bin.answers);
    assert.equal(computeSum(counts), rows.length);
  });
});

type Answer = readonly [correct: number, twentieths: number];

/** Bounds of the statistic over resamples that copy the answers of each drawn learner. */
function resampleDirectly(ofLearners: readonly Answer[][], compute: (rows: Answer[]) => number | null) {
  const random = createSeededRandom(seed);
  const values = indices(figureResamples).map(() =>
    compute(ofLearners.flatMap(() => ofLearners[Math.floor(random() * ofLearners.length)] as Answer[])),
  );
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  return [0.025, 0.975].map((share) => sorted[Math.round(share * (sorted.length - 1))] as number);
}

test('estimateIntervals equals a bootstrap that copies answers, with ties and undefined resamples', async () => {
  const random = createSeededRandom(7);
  const draw = (): Answer => [Math.round(random()), 4 + Math.floor(6 * random())];
  const tied = indices(12).map((i) => indices(1 + (i % 4)).map(draw));
  // Some resamples have no wrong answer.
  const alike: Answer[][] = [[[1, 18]], [[1, 7]], [[1, 5]], [[0, 7]]];
  for (const ofLearners of [tied, alike]) {
    const [correct, predictions] = columns(ofLearners.flat());
    const learner = Uint32Array.from(ofLearners.flatMap((rows, i) => rows.map(() => i)));
    const [found] = await estimateIntervals(correct, [predictions], learner);
    const expected = {
      auc: resampleDirectly(ofLearners, (rows) => estimate(columns(rows))),
      rmse: resampleDirectly(ofLearners, (rows) => measurePredictions(...columns(rows)).rmse),
    };
    for (const name of ['auc', 'rmse'] as const)
      for (const [i, bound] of expected[name].entries()) assertNear(found?.[name]?.[i], bound);
    const alone = await estimateIntervals(correct, [predictions], learner.fill(0));
    assert.deepEqual(alone, [{ auc: null, rmse: null }], 'one learner');
  }
});
