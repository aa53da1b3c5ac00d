export interface Range {
  readonly low: number;
  readonly high: number;
}

/** First mastery, learning at an attempt, guess, slip, forgetting at an attempt. */
export interface BktParameters {
  readonly pInit: number;
  readonly pLearn: number;
  readonly pGuess: number;
  readonly pSlip: number;
  readonly pForget: number;
}

export const defaultParameters: BktParameters = {
  pInit: 0.3,
  pLearn: 0.1,
  pGuess: 0.2,
  pSlip: 0.1,
  pForget: 0,
};

/** Keeps all evidence reversible. */
export const masteryBounds: Range = { low: 0.001, high: 0.999 };

/** .95: Corbett & Anderson 1995; the rest decided here. */
export const masteredAt = { mastery: 0.95, smoothed: 0.8, attempts: 5, accuracy: 0.75 } as const;

/** Reached mastery is lost below this, so that answers near .95 do not reach it repeatedly: decided here. */
export const lostBelow = 0.8;

/**
 * At least 85 % right with mastery, 25 % without (Baker, Corbett & Aleven 2008). `itemGuess`, `itemSlip`: of
 * one question, after the shift by difficulty.
 */
export const fitBounds: Readonly<Record<keyof BktParameters | 'itemGuess' | 'itemSlip', Range>> = {
  pInit: { low: 0.02, high: 0.9 },
  pLearn: { low: 0.001, high: 0.16 },
  pGuess: { low: 0.25, high: 0.4 },
  pSlip: { low: 0.02, high: 0.15 },
  pForget: { low: 0.01, high: 0.03 },
  itemGuess: { low: 0.02, high: 0.45 },
  itemSlip: { low: 0.01, high: 0.35 },
};

/** For manual parameters: 1 - slip > guess by this margin, else right answers lower mastery. */
export const guessSlipMargin = 0.05;

/** For manual parameters: wider than fits, because people know of skills without answers. */
export const manualBounds: Range = { low: 0.001, high: 0.999 };
export const manualForget: Range = { low: 0, high: 0.1 };

/** P* (`pStar`) stays below this share of pInit, so that a first wrong answer lowers mastery. */
export const wrongAnswerShare = 0.9;

/** Half of the shift of a Rasch model: decided here. */
export const difficultyModel = { scale: 0.5, limit: 3 } as const;

/**
 * Mastery above the prior halves in `baseDays` after a grace. Each `doublingDays` more days with a right
 * answer double this time (spacing). The base is an assumption.
 */
export const forgettingModel = { baseDays: 30, doublingDays: 2, maxDays: 365, graceDays: 1 } as const;

/** Likelihood ratios of confidence 1 to 5 with a right answer: decided here. */
export const confidenceRatios: readonly number[] = [0.6, 0.8, 1, 1.15, 1.3];
