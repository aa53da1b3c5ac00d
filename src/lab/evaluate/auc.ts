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

/**
 * AUC and RMSE by a function of the learners' weights, which sorts only once. AUC is NaN without right or without wrong
 * answers.
 */
export function prepareFigures(correct: Uint8Array, predictions: Float64Array, learner: Uint32Array) {
  const order = learner.map((_, i) => i);
  order.sort((a, b) => (predictions[a] as number) - (predictions[b] as number));
  return (weights: Float64Array): [auc: number, rmse: number] => {
    // `below`: weight of wrong answers with lower predictions.
    let [area, below, tiedRight, tiedWrong, right, squares, last] = [0, 0, 0, 0, 0, 0, Number.NaN];
    for (const i of order) {
      const weight = weights[learner[i] as number] as number;
      const prediction = predictions[i] as number;
      if (prediction !== last) [below, tiedRight, tiedWrong, last] = [below + tiedWrong, 0, 0, prediction];
      const isRight = correct[i] === 1;
      // Ties count half.
      area += isRight ? weight * (below + tiedWrong / 2) : (weight * tiedRight) / 2;
      squares += weight * (prediction - (isRight ? 1 : 0)) ** 2;
      if (isRight) [right, tiedRight] = [right + weight, tiedRight + weight];
      else tiedWrong += weight;
    }
    const wrong = below + tiedWrong;
    return [area / (right * wrong), Math.sqrt(squares / (right + wrong))];
  };
}
