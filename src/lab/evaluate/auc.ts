import { sumByKey } from './predict.js';

/**
 * Area under the ROC curve. `margin` is half the 95 % interval for clustered data, because a learner's
 * answers are not independent (Obuchowski 1997, Biometrics 53: 567, linear form); null for one learner. Both
 * are null if all answers are right, or all wrong.
 * @param learner of each answer, ascending
 */
export function estimateAuc(correct: Uint8Array, predictions: Float64Array, learner: Uint32Array) {
  const right = predictions.filter((_, i) => correct[i] === 1).sort();
  const wrong = predictions.filter((_, i) => correct[i] !== 1).sort();
  if (right.length === 0 || wrong.length === 0) return { auc: null, margin: null };
  const placements = predictions.map((p, i) =>
    correct[i] === 1 ? computeShareBelow(wrong, p) : 1 - computeShareBelow(right, p),
  );
  const auc = placements.reduce((sum, value, i) => sum + value * (correct[i] as number), 0) / right.length;
  const terms = placements.map((value, i) => (value - auc) / (correct[i] === 1 ? right : wrong).length);
  const learners = new Set(learner).size;
  const sums = sumByKey(learner, 1 + (learner.at(-1) ?? 0), terms);
  const squares = sums.reduce((sum, value) => sum + value ** 2, 0);
  return { auc, margin: learners < 2 ? null : 1.96 * Math.sqrt((learners / (learners - 1)) * squares) };
}

/** Ties count half. */
const computeShareBelow = (sorted: Float64Array, value: number): number =>
  (findFirstIndex(sorted, (one) => one >= value) + findFirstIndex(sorted, (one) => one > value)) /
  2 /
  sorted.length;

/** Binary search: all values after the first match must match. */
function findFirstIndex(sorted: Float64Array, matches: (value: number) => boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (matches(sorted[middle] as number)) high = middle;
    else low = middle + 1;
  }
  return low;
}
