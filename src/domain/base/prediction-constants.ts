/** Tuned by validation within the training part of real logs. No optimum is sharp. */
export const predictionModel = {
  /**
   * Ability filter: prior variance of ability, its growth per answer, and the variance of a skill's residual.
   */
  abilityVariance: 1,
  abilityNoise: 0.001,
  abilityBound: 5,
  residualVariance: 0.2,
  residualBound: 4,
  /** Weights of the newest answer in the two moving averages. */
  recentRate: 0.3,
  slowRate: 0.03,
  /** Variance of item effects. Prior answers are at least `startPrior` and priorOver / variance. */
  items: { variance: { low: 0.002, high: 4, start: 0.8, startItems: 2 }, priorOver: 5, startPrior: 10 },
  /** Log-odds of a mean vary less than single log-odds: by sqrt(1 + pi/8 s^2), with s = 1.1 logits. */
  itemScale: 1.2,
  /** Elo step: step / (from + fall * answers). The second pass starts with `warm` answers. */
  offsets: {
    passes: 2,
    learner: { step: 0.8, from: 1, fall: 0.1 },
    skill: { step: 0.3, from: 2, fall: 0.05, warm: 50 },
    item: { step: 1, from: 2.5, fall: 0.2, warm: 5 },
  },
  fit: {
    sweeps: 7,
    /** Sweeps that compute a Hessian. Later sweeps reuse the last one. */
    freshSweeps: 3,
    /** Maximum step of skill, item and run terms, in standardised units. */
    maxGroupStep: 1.5,
    /** Minimum standard deviation of a feature. Without it, weights of rare features diverge. */
    minSd: 0.3,
    /** With fewer answers a fit changes only intercepts and slopes, not the weights. */
    minAnswers: 5000,
    /** Ridges in standardised units: weights are drawn to their start values, terms to 0. */
    ridge: 1000,
    skillRidge: 1.5,
    slopeRidge: 30,
    itemRidge: 1.25,
    itemAbilityRidge: 15,
    itemSlopeRidge: 7.5,
    runRidge: 1,
    beforeRidge: 8,
    formRidge: 10,
    courseRidge: 4,
    skillRunRidge: 10,
    itemRunRidge: 5,
    patternRidge: 5,
    itemPairRidge: 8,
    maxPairStep: 1,
    /** Assumed variance of one streak step, for its ridge. */
    streakVariance: 0.16,
    beforeSweeps: 4,
    /** Minimum answers of a pair. `each` limits pairs per skill or item, `all` limits the total. */
    skillPairs: { answers: 10, each: 256, all: 200_000 },
    itemPairs: { answers: 3, each: 32, all: 2_000_000 },
    /** Number of learner groups, maximum answers, and sweeps before the first optional part. */
    crossFit: { parts: 3, answers: 400_000, sweeps: 6, freshSweeps: 1 },
    /** Scale of log-odds: ridge towards 1, limits (about 1 on real logs), longest step. */
    calibration: { ridge: 50, low: 0.2, high: 2, maxStep: 0.5 },
    /** A learner's first answers to an item all count. Later ones count once a day. */
    itemAnswersEach: 8,
  },
} as const;

/** Constants of `tracing/course.ts`, tried on answer logs. */
export const courseModel = {
  skills: 7,
  formRate: 0.3,
  firstTries: { step: 0.8, fall: 0.1, formRate: 0.1 },
  retries: { step: 0.6, fall: 0.05, formRate: 0.2 },
  retryOffsets: [0, -0.4, -0.8, -1.2],
  /** Weight of each previous skill relative to the more recent one; typical moving average. */
  fading: 0.65,
  usualForm: 0.15,
} as const;
