import { predictionModel } from '../base/params.js';
import { clamp, logit } from '../base/probability.js';

/** What answers on one item came to: sums, so that processes add to them in any order. */
export interface ItemCounts {
  readonly answers: number;
  readonly right: number;
  /** Sum of the probabilities of a right answer, the item's own term left out. */
  readonly expected: number;
}

const probabilityFloor = 1e-3;

/**
 * The item's own term in the log-odds of a right answer: how much better than expected its answers are, drawn to 0
 * as if it had some more answers that came out as expected. 0 without answers. One learner's answers on an item
 * should count once a day, so that nobody can move it alone.
 *
 * @param priorAnswers how many more, by what the fit found of how much items differ
 * @returns logits; above 0 for an item that is easier than its skill
 */
export function itemDifficulty({ answers, right, expected }: ItemCounts, priorAnswers: number): number {
  if (answers === 0) return 0;
  const { itemScale } = predictionModel;
  const mean = clamp(expected / answers, probabilityFloor, 1 - probabilityFloor);
  const share = clamp(
    (right + priorAnswers * mean) / (answers + priorAnswers),
    probabilityFloor,
    1 - probabilityFloor,
  );
  return itemScale * (logit(share) - logit(mean));
}

/** @param variance of the items' effects */
export function priorAnswersFor(variance: number): number {
  const { priorOver, startPrior } = predictionModel.items;
  return Math.max(startPrior, priorOver / variance);
}
