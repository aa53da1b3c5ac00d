import type { BktParameters } from './params.js';
import { masteryBounds } from './params.js';
import { clamp, logit, sigmoid } from './probability.js';

/** What one answer does to mastery; every value a probability. */
export interface BktStep {
  /** Probability of a right answer, told before the answer was seen. */
  readonly pCorrect: number;
  /** Mastery given the answer, before learning from the attempt. */
  readonly posterior: number;
  readonly masteryAfter: number;
}

/**
 * Probability of a right answer at mastery L: L (1 - slip) + (1 - L) guess.
 * Source: Corbett & Anderson 1995.
 */
function predictCorrect(mastery: number, { pGuess, pSlip }: BktParameters): number {
  return mastery * (1 - pSlip) + (1 - mastery) * pGuess;
}

/**
 * One step of Bayesian Knowledge Tracing (Corbett & Anderson 1995), the evidence added as a log Bayes factor,
 * which equals the usual quotient and stays exact near 0 and 1.
 *
 * A wrong answer never raises mastery: where mastery is below P* = learn (1 - guess) / (1 - slip - guess), the
 * plain formula would (Shchepakin et al. 2024), hence the guard.
 *
 * @param mastery mastery before the answer, 0 to 1
 * @throws never; the result stays within `masteryBounds`
 */
export function traceAnswer(parameters: BktParameters, mastery: number, isCorrect: boolean): BktStep {
  const before = clamp(mastery, masteryBounds.low, masteryBounds.high);
  const posterior = sigmoid(logit(before) + Math.log(bayesFactor(parameters, isCorrect)));
  const learned = posterior + (1 - posterior) * parameters.pLearn;
  const guarded = isCorrect ? learned : Math.min(learned, before);
  return {
    pCorrect: predictCorrect(before, parameters),
    posterior,
    masteryAfter: clamp(guarded, masteryBounds.low, masteryBounds.high),
  };
}

/** Evidence of the answer for mastery against no mastery. */
function bayesFactor({ pGuess, pSlip }: BktParameters, isCorrect: boolean): number {
  return isCorrect ? (1 - pSlip) / pGuess : pSlip / (1 - pGuess);
}
