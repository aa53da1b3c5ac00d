import {
  type BktParameters,
  confidenceRatios,
  difficultyModel,
  type FitBounds,
  fitBounds,
  masteryBounds,
} from '../base/params.js';
import { clamp, logit } from '../base/probability.js';

/** What one answer does to mastery; every value a probability. */
export interface BktStep {
  /** Of a right answer, before it was given. */
  readonly pCorrect: number;
  /** Mastery given the answer, before learning from the attempt. */
  readonly posterior: number;
  readonly masteryAfter: number;
}

/** What makes one answer's evidence differ from another's on the skill. */
interface ItemEvidence {
  /** Logit shift of guess (down) and slip (up) as `difficultyShift` gives it; 0: none. */
  readonly difficultyShift: number;
  /** Share of the evidence and of the learning that counts, 0 to 1; default 1. */
  readonly weight?: number;
  /** Reported confidence, 1 to 5, as evidence; default null, for reports of oneself are easy to game and differ by culture. */
  readonly confidence?: number | null;
}

/** Guess and slip on one question. */
type GuessSlip = Pick<BktParameters, 'pGuess' | 'pSlip'>;

const plainEvidence: ItemEvidence = { difficultyShift: 0 };

/**
 * One step of Bayesian Knowledge Tracing (Corbett & Anderson 1995) on the odds of mastery: times the Bayes factor
 * of the answer, which equals the usual quotient, then learning. The result stays within `masteryBounds`.
 *
 * @param mastery before the answer, 0 to 1
 * @param guard a wrong answer never raises mastery. The plain formula raises it below `pStar`: fitted parameters avoid
 * that at their prior, but not for every difficulty, nor after a change of parameters
 */
export function traceAnswer(
  parameters: BktParameters,
  mastery: number,
  isCorrect: boolean,
  evidence: ItemEvidence = plainEvidence,
  guard = true,
): BktStep {
  const { weight = 1, confidence = null } = evidence;
  const item = itemGuessSlip(parameters, evidence.difficultyShift);
  const before = clamp(mastery, masteryBounds.low, masteryBounds.high);
  const factor = bayesFactor(item, isCorrect, confidence);
  const odds = (before / (1 - before)) * (weight === 1 ? factor : factor ** weight);
  const posterior = 1 / (1 + 1 / odds); // holds for odds of 0 and infinity too: guess or slip may be 0
  const learned = posterior + (1 - posterior) * parameters.pLearn * weight;
  const guarded = guard && !isCorrect ? Math.min(learned, before) : learned;
  return {
    pCorrect: predictCorrect(before, item),
    posterior,
    masteryAfter: clamp(guarded, masteryBounds.low, masteryBounds.high),
  };
}

/**
 * Probability of a right answer at mastery L: L (1 - slip) + (1 - L) guess.
 * Source: Corbett & Anderson 1995.
 */
export const predictCorrect = (mastery: number, { pGuess, pSlip }: GuessSlip): number =>
  mastery * (1 - pSlip) + (1 - mastery) * pGuess;

/**
 * Evidence of the answer for mastery against no mastery. Confidence counts with right answers only: a confident wrong one
 * may be a slip or a misconception. A right answer, however unsure, never counts against mastery (decided here).
 */
function bayesFactor({ pGuess, pSlip }: GuessSlip, isCorrect: boolean, confidence: number | null): number {
  if (!isCorrect) return pSlip / (1 - pGuess);
  const factor = (1 - pSlip) / pGuess;
  return confidence === null ? factor : Math.max(1, factor * (confidenceRatios[confidence - 1] ?? 1));
}

/**
 * Guess and slip on a question: logit guess - shift, logit slip + shift. The gap of logit(1 - slip) and
 * logit(guess) stays, so 1 - slip > guess is preserved; shift 0 gives the skill's own values bit for bit.
 * Source: item guess and slip of KT-IDEM (Pardos & Heffernan 2011) with one known covariate.
 */
export function itemGuessSlip(parameters: BktParameters, shift: number): GuessSlip {
  if (shift === 0) return parameters;
  const { pGuess, pSlip } = parameters;
  const ratio = Math.exp(-shift); // of the odds of a right guess
  return {
    pGuess: (pGuess * ratio) / (1 - pGuess + pGuess * ratio),
    pSlip: pSlip / (pSlip + (1 - pSlip) * ratio),
  };
}

/**
 * The logit shift for a question: scale * difficulty, cut once so that guess and slip both stay inside the item bounds;
 * cutting each by itself would let a right answer on a harder question count less. A side on which the skill's own values
 * lie outside the bounds allows no shift; 0 stays 0.
 *
 * @param difficulty in logits, minus the mean of the skill's supplied difficulties
 * @param scale k, at least 0
 */
export function difficultyShift(
  { pGuess, pSlip }: BktParameters,
  difficulty: number,
  scale: number,
  { itemGuess, itemSlip }: Pick<FitBounds, 'itemGuess' | 'itemSlip'> = fitBounds.narrow,
): number {
  const harder = difficulty > 0;
  const guessRoom = logit(pGuess) - logit(harder ? itemGuess.low : itemGuess.high);
  const slipRoom = logit(harder ? itemSlip.high : itemSlip.low) - logit(pSlip);
  const shift = scale * clamp(difficulty, -difficultyModel.limit, difficultyModel.limit);
  return harder
    ? Math.min(shift, Math.max(0, Math.min(guessRoom, slipRoom)))
    : Math.max(shift, Math.min(0, Math.max(guessRoom, slipRoom))) + 0; // + 0: never -0, which prints otherwise
}

/**
 * P* = learn (1 - guess) / (1 - slip - guess): below this mastery the plain formula lets a wrong answer raise it
 * (Shchepakin, Sankaranarayanan & Zimmaro 2024).
 */
export const pStar = ({ pLearn, pGuess, pSlip }: BktParameters): number =>
  (pLearn * (1 - pGuess)) / (1 - pSlip - pGuess);
