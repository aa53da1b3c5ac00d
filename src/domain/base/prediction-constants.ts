/** Tuned by validation on real logs. */
export const predictionConstants = {
  /** Ability filter: prior variance, growth per answer, variance of skill residuals. */
  abilityVariance: 1,
  abilityNoise: 0.001,
  abilityBound: 5,
  residualVariance: 0.2,
  residualBound: 4,
  recentRate: 0.3,
  slowRate: 0.03,
  /** Prior answers: at least `startPrior` and priorOver / variance. */
  items: { variance: { low: 0.002, high: 4, start: 0.8, startItems: 2 }, priorOver: 5, startPrior: 10 },
  /** Log-odds of means are smaller by sqrt(1 + pi/8 s^2), with s = 1.1 logits. */
  itemScale: 1.2,
  /** Elo step: step / (from + fall * answers). Later passes start at `warm` answers. */
  offsets: {
    passes: 2,
    learner: { step: 0.8, from: 1, fall: 0.1 },
    skill: { step: 0.3, from: 2, fall: 0.05, warm: 50 },
    item: { step: 1, from: 2.5, fall: 0.2, warm: 5 },
  },
  fit: {
    sweeps: 7,
    freshSweeps: 3,
    /** In standardised units. */
    maxGroupStep: 1.5,
    /** Weights of rare features diverge without it. */
    minSd: 0.3,
    /** With fewer, only intercepts and slopes are fitted. */
    minAnswers: 5000,
    /** In standardised units: weights are drawn to their start values, terms to 0. */
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
    streakVariance: 0.16,
    beforeSweeps: 4,
    /** A combination of skills with fewer answers gets the mean terms of its skills. */
    combinationAnswers: 20,
    /** Minimum answers of a pair; maximum pairs per owner and in total. */
    skillPairs: { answers: 10, each: 256, all: 200_000 },
    itemPairs: { answers: 3, each: 32, all: 2_000_000 },
    /** Groups of learners, maximum answers, sweeps before the optional parts. */
    crossFit: { parts: 3, answers: 400_000, sweeps: 6, freshSweeps: 1 },
    calibration: { ridge: 50, low: 0.2, high: 2, maxStep: 0.5 },
    /** A learner's later answers to an item count once a day. */
    itemAnswersEach: 8,
  },
} as const;

/** Tried on answer logs. */
export const courseConstants = {
  skills: 7,
  formRate: 0.3,
  firstTries: { step: 0.8, fall: 0.1, formRate: 0.1 },
  retries: { step: 0.6, fall: 0.05, formRate: 0.2 },
  retryOffsets: [0, -0.4, -0.8, -1.2],
  /** Weight relative to the next skill; usual moving average. */
  fading: 0.65,
  usualForm: 0.15,
} as const;
