/**
 * Simulated. After `repeats` answers on a skill, the next one counts half. Each answer moves the covariance
 * to the prior by `drift`, or by `fallingDrift` while results fall.
 */
export const abilityConstants = {
  variance: 1,
  drift: 0.0005,
  fallingDrift: 0.01,
  /** Days without answers that move the covariance halfway to the prior. */
  pauseHalfLife: 45,
  bound: 4,
  repeats: 8,
} as const;

export const trendConstants = {
  /** Averages over about 70 and 100 answers. */
  shareRate: 0.015,
  changeRate: 0.01,
  minAttempts: 5,
  /** `clearChange` is three standard errors of a constant learner. */
  noChange: 0.05,
  clearChange: 0.1,
  /** Nothing is learned at a share correct of `guessing`, full learning starts at `learningFrom`. */
  guessing: 0.25,
  learningFrom: 0.5,
  minAnswers: 30,
  /**
   * Growth: decay per answer; weight of the tenant's mean; mean of constant learners, which counts as none;
   * largest factor; smallest variance of an answer.
   */
  growthFading: 0.999,
  growthPrior: 1,
  chanceGrowth: 0.1,
  maxGrowth: 2,
  minVariance: 0.02,
  /** Days without answers that are a pause. After it, earlier answers count as so many in the recent share. */
  pauseDays: 14,
  answersBeforePause: 10,
  /** Gain, gain while results change, decay per answer. */
  biasRate: 0.015,
  changingBiasRate: 0.06,
  biasFading: 0.998,
} as const;

/** `unknownDay` is the activity of a day before the first answer. */
export const activityConstants = { days: 14, unknownDay: 1 / 7 } as const;

/** Half-lives of two moving averages, in days; maximum number of idle days to close. */
export const momentumConstants = {
  shortDays: 3,
  longDays: 14,
  threshold: 0.01,
  minAttempts: 5,
  idleClosings: 14,
} as const;

/** Plateau: slope per attempt plus `z` standard errors below `minSlope` (simulated). */
export const plateauConstants = {
  decay: 0.9,
  minSlope: 0.02,
  z: 1.2816,
  minAttempts: 12,
  hold: 3,
  resetDays: 14,
  /** Sums of weights are constant from here. */
  maxAttempts: 400,
} as const;

/** Wise & Ma 2012; Kong, Wise & Bhola 2007. */
export const rapidConstants = {
  minAnswers: 30,
  defaultSeconds: 3,
  shareOfMean: 0.1,
  minSeconds: 1,
  maxSeconds: 10,
  /** At most 31: the window is the bits of an integer. */
  window: 20,
  minTimed: 10,
  flagShare: 0.3,
  awaySeconds: 3600,
} as const;

/** Our choice. warehouse/schema/skill-views.ts repeats these constants. */
export const paceConstants = {
  /** A time of 75 s, and the target accuracy of `nextItemsConstants`. `answers` is the weight of the prior. */
  prior: { logMean: Math.log(75), logSd: 0.6, accuracy: 0.75, answers: 20 },
  minVariance: 0.04,
  maxSlowness: 1.5,
  chance: 0.2,
  accuracySd: 0.5,
  /** Relative to accuracy, which has weight 1. */
  timeWeight: 0.6,
  minStep: 0.05,
  minTimed: 3,
} as const;

/** Our choice; z for one-sided 5 %. */
export const calibrationConstants = { minAnswers: 10, minBias: 0.15, z: 1.645 } as const;
