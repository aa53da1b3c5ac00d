import { setImmediate as nextTurn } from 'node:timers/promises';
import { createSeededRandom } from '../../seeded-random.js';
import { prepareFigures } from './auc.js';
import { sumByKey } from './predict.js';
import type { Interval } from './validity.js';

export const seed = 20_260_101;
const tailShare = 0.025;

/**
 * 95 % percentile intervals by a bootstrap over learners, because a learner's answers are not independent.
 * Yields to the event loop, so that signals are handled.
 * @param measure statistics of the drawn learners (0 to `learners` - 1, with repetitions). NaN is left out; the bounds
 * are NaN if every resample has NaN
 */
export async function bootstrapLearners(
  learners: number,
  resamples: number,
  measure: (drawn: Uint32Array) => readonly number[],
) {
  const random = createSeededRandom(seed);
  const samples: (readonly number[])[] = [];
  while (samples.length < resamples) {
    await nextTurn();
    samples.push(measure(new Uint32Array(learners).map(() => Math.floor(random() * learners))));
  }
  return (samples[0] ?? []).map((_, i) => computeBounds(samples.map((sample) => sample[i] as number)));
}

function computeBounds(values: readonly number[]) {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN;
  return { low: at(tailShare), high: at(1 - tailShare) };
}

/** 95 % intervals differ by about a tenth of their width from run to run. */
export const figureResamples = 200;

/**
 * Intervals of AUC and RMSE for each column of predictions; null if a figure is not defined, or for one learner.
 * @param learner of each answer, ascending from 0
 */
export async function estimateIntervals(
  correct: Uint8Array,
  columns: readonly Float64Array[],
  learner: Uint32Array,
) {
  const learners = 1 + (learner.at(-1) ?? 0);
  const figures = columns.map((column) => prepareFigures(correct, column, learner));
  const bounds = await bootstrapLearners(learners, figureResamples, (drawn) => {
    const weights = sumByKey(drawn, learners);
    return figures.flatMap((compute) => compute(weights));
  });
  const intervals = bounds.map(
    ({ low, high }): Interval => (learners < 2 || Number.isNaN(low) ? null : [low, high]),
  );
  return columns.map((_, i) => ({ auc: intervals[2 * i] ?? null, rmse: intervals[2 * i + 1] ?? null }));
}
