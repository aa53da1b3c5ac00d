export interface Range {
  readonly low: number;
  readonly high: number;
}

/** `pLearn` and `pForget` apply at every attempt. */
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

/** Excludes 0 and 1, which no answer could change. */
export const masteryBounds: Range = { low: 0.001, high: 0.999 };

/** .95: Corbett & Anderson 1995. The rest is our choice. */
export const masteryThresholds = { mastery: 0.95, smoothed: 0.8, attempts: 5, accuracy: 0.75 } as const;

/** Our choice. The gap to .95 prevents repeated events. */
export const masteryLossThreshold = 0.8;

/**
 * Baker, Corbett & Aleven 2008: at least 85 % correct with mastery, 25 % without. `itemGuess` and `itemSlip`
 * limit a question after its difficulty shift.
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

/** Guess + slip is at most 1 - margin; otherwise correct answers could lower mastery. */
export const guessSlipMargin = 0.05;

/** Wider than `fitBounds`: operators may know a skill without answers. */
export const manualBounds: Range = { low: 0.001, high: 0.999 };
export const manualForgetBounds: Range = { low: 0, high: 0.1 };

/** Limit of P* (`pStar`) / pInit: below it, a wrong first answer lowers mastery. */
export const maxPStarShare = 0.9;

export const difficultyConstants = { scale: 0.5, limit: 3 } as const;

/**
 * After the grace period, mastery above pInit halves in `baseDays` (an assumption). Every `doublingDays` days
 * with correct answers double this time (spacing).
 */
export const forgettingConstants = { baseDays: 30, doublingDays: 2, maxDays: 365, graceDays: 1 } as const;
