import { predictionModel } from '../../base/params.js';
import { clamp } from '../../base/probability.js';

/**
 * What the answers on each item deviate by from what was expected without it, first answers of each learner only:
 * later ones deviate alike, whatever the item is. Places are items.
 */
export interface ItemDeviations {
  /** Sums of r = y - p, of r², of v = p (1 - p) and of v². */
  readonly sum: Float64Array;
  readonly squares: Float64Array;
  readonly information: Float64Array;
  readonly informationSquares: Float64Array;
  /** The learner who answered last, from 1; 0: nobody. */
  readonly last: Uint32Array;
}

export const newItemDeviations = (items: number): ItemDeviations => ({
  sum: new Float64Array(items + 1),
  squares: new Float64Array(items + 1),
  information: new Float64Array(items + 1),
  informationSquares: new Float64Array(items + 1),
  last: new Uint32Array(items + 1),
});

/** Learners come one after the other. */
export function noteDeviation(
  deviations: ItemDeviations,
  item: number,
  learner: number,
  r: number,
  v: number,
): void {
  const { sum, squares, information, informationSquares, last } = deviations;
  if (last[item] === learner + 1) return;
  last[item] = learner + 1;
  sum[item] = (sum[item] as number) + r;
  squares[item] = (squares[item] as number) + r * r;
  information[item] = (information[item] as number) + v;
  informationSquares[item] = (informationSquares[item] as number) + v * v;
}

const rounds = 20;

/**
 * Variance of the items' effects by moments, in logits squared: two learners' deviations on the same item have the
 * product tau² v v' on average, whatever else they deviate by. Items are weighed by how exactly they tell it, which
 * depends on tau² itself; the start value counts like a few of them.
 */
export function itemVariance(deviations: ItemDeviations): number {
  const { low, high, start } = predictionModel.items.variance;
  let variance: number = start;
  for (let round = 0; round < rounds; round++) variance = clamp(estimate(deviations, variance), low, high);
  return variance;
}

function estimate(deviations: ItemDeviations, variance: number): number {
  const { sum, squares, information, informationSquares } = deviations;
  const { start, startItems } = predictionModel.items.variance;
  let weights = startItems / start ** 2;
  let products = start * weights;
  for (let item = 1; item < sum.length; item++) {
    const v = information[item] as number;
    if (v === 0) continue;
    const trust = 1 / (1 + variance * v) ** 2;
    products += trust * ((sum[item] as number) ** 2 - (squares[item] as number));
    weights += trust * (v * v - (informationSquares[item] as number));
  }
  return products / weights;
}
