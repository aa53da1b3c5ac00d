/**
 * Bayesian Rasch filter (simulated). After `repeats` answers on a skill, the next one counts half. Each
 * answer moves the covariance towards the prior by `drift`, or by `fallingDrift` while results fall.
 */
export const abilityModel = { variance: 1, drift: 0.0005, fallingDrift: 0.01, bound: 4, repeats: 8 } as const;

/** Compares recent results with earlier ones. Simulated and tried on answer logs. */
export const trendModel = {
  /** Weights of the newest answer: the averages cover about 70 and 100 answers. */
  shareRate: 0.015,
  changeRate: 0.01,
  minAttempts: 5,
  /** Ignores a decline up to `noChange`. `clearChange` is three standard errors of a constant learner. */
  noChange: 0.05,
  clearChange: 0.1,
  /** From `minAnswers` answers: no learning at this share correct, full learning from `learningFrom`. */
  guessing: 0.2,
  learningFrom: 0.5,
  minAnswers: 30,
  /** Bias of predictions: gain, gain while results change, decay per answer. */
  biasRate: 0.015,
  changingBiasRate: 0.06,
  biasFading: 0.998,
} as const;

/** A day before a new learner's first answer counts as this part of an active day. */
export const activityModel = { days: 14, unknownDay: 1 / 7 } as const;

/** Difference of two moving averages of daily mastery, with these half-lives. */
export const momentumModel = {
  shortDays: 3,
  longDays: 14,
  threshold: 0.01,
  minAttempts: 5,
  /** Maximum number of idle days that are closed. */
  idleClosings: 14,
} as const;

/** Plateau if the slope + `z` standard errors is below `minSlope` per attempt (simulated). */
export const plateauModel = {
  decay: 0.9,
  minSlope: 0.02,
  z: 1.2816,
  minAttempts: 12,
  hold: 3,
  resetDays: 14,
  /** Sums of weights are constant from here: .9^400 times 400² is below 1e-13. */
  maxAttempts: 400,
} as const;

/** Wise & Ma 2012; Kong, Wise & Bhola 2007. Our choice: flag, window, counts, `awaySeconds`. */
export const rapidModel = {
  minAnswers: 30,
  defaultSeconds: 3,
  shareOfMean: 0.1,
  minSeconds: 1,
  maxSeconds: 10,
  /** At most 31, because the window is the bits of an integer. */
  window: 20,
  minTimed: 10,
  flagShare: 0.3,
  awaySeconds: 3600,
} as const;

/** Our choice (docs/model.md). The views in warehouse/schema/views.ts repeat these constants. */
export const paceModel = {
  /** 75 s, the default target of `nextItemsConstants`, and the weight of the prior in answers. */
  prior: { logMean: Math.log(75), logSd: 0.6, accuracy: 0.75, answers: 20 },
  minVariance: 0.04,
  /** Limit of the standardised ln time in both directions. */
  maxSlowness: 1.5,
  /** Probability of a correct guess. */
  chance: 0.2,
  /** About the standard deviation of one answer. */
  accuracySd: 0.5,
  /** Relative to accuracy, which has weight 1, because a test counts correct answers. */
  timeWeight: 0.6,
  /** Minimum weight of the newest answer. */
  minStep: 0.05,
  minTimed: 3,
} as const;

/** Our choice. z is the one-sided 5 % point of the normal distribution. */
export const calibrationModel = { minAnswers: 10, minBias: 0.15, z: 1.645 } as const;
