/** Tuned by validation inside the training part of real logs; no optimum is sharp. */
export const predictionModel = {
  /** Ability filter: prior variance of the ability, its growth per answer, and the residual of a skill. */
  abilityVariance: 1,
  abilityNoise: 0.001,
  abilityBound: 5,
  residualVariance: 0.2,
  residualBound: 4,
  /** Weight of the newest answer in the moving averages. */
  recentRate: 0.3,
  slowRate: 0.03,
  /** Variance of item effects. Prior answers: the larger of `startPrior` and priorOver / variance. */
  items: { variance: { low: 0.002, high: 4, start: 0.8, startItems: 2 }, priorOver: 5, startPrior: 10 },
  /** Log-odds of means differ less than of single answers: by sqrt(1 + pi/8 s^2), s = 1.1 logits. */
  itemScale: 1.2,
  /** Elo steps: step / (from + fall * answers). A later pass starts with `warm` answers. */
  offsets: {
    passes: 2,
    learner: { step: 0.8, from: 1, fall: 0.1 },
    skill: { step: 0.3, from: 2, fall: 0.05, warm: 50 },
    item: { step: 1, from: 2.5, fall: 0.2, warm: 5 },
  },
  fit: {
    sweeps: 7,
    /** Sweeps with a new Hessian; later ones reuse the last. */
    freshSweeps: 3,
    /** Maximum step of terms of skills, items and runs, in standardised units. */
    maxGroupStep: 1.5,
    /** Minimum sd of a feature: weights of rare ones diverge without it. */
    minSd: 0.3,
    /** Below, weights stay at their start; only intercepts and slopes are fitted. */
    minAnswers: 5000,
    /** In standardised units. Weights are drawn to their start, terms to 0. */
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
    /** Assumed variance of a streak's step, for its ridge. */
    streakVariance: 0.16,
    beforeSweeps: 4,
    /** Minimum answers of a pair; maximum pairs per skill or item, and in total. */
    skillPairs: { answers: 10, each: 256, all: 200_000 },
    itemPairs: { answers: 3, each: 32, all: 2_000_000 },
    /** Parts of the learners, answers at most, sweeps before any part. */
    crossFit: { parts: 3, answers: 400_000, sweeps: 6, freshSweeps: 1 },
    /** Spread of log-odds: ridge towards 1, limits (about 1 on real logs), longest step. */
    calibration: { ridge: 50, low: 0.2, high: 2, maxStep: 0.5 },
    /** Answers of one learner that count for an item; further ones count once a day. */
    itemAnswersEach: 8,
  },
} as const;

/** For `tracing/course.ts`: tried on answer logs and frozen. */
export const courseModel = {
  skills: 7,
  formRate: 0.3,
  firstTries: { step: 0.8, fall: 0.1, formRate: 0.1 },
  retries: { step: 0.6, fall: 0.05, formRate: 0.2 },
  retryOffsets: [0, -0.4, -0.8, -1.2],
  /** Weight of each skill before, relative to the next one; and the centre of forms. */
  fading: 0.65,
  usualForm: 0.15,
} as const;
