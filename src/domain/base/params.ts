/**
 * All constants of the models. A change alters results, so increase `modelVersion`. "Decided here": no
 * source. "Simulated", "tuned": see docs/model.md.
 */

export const modelVersion = 5;

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

/** 80 % range of the true share: log-odds +- z sqrt(variance + perAnswer / (attempts + priorAnswers)). */
export const expectedModel = { z: 1.2816, variance: 0.6, perAnswer: 0.5, priorAnswers: 1 } as const;

/** Reached mastery is lost below this, so that answers near .95 do not reach it repeatedly: decided here. */
export const lostBelow = 0.8;

/** Means and sd from published SAT norms, the rest simulated. */
export const scoreModel = {
  // Without real test scores, the link from ability to score is an assumption.
  mean: { math: 510, rw: 520 },
  sd: 110,
  sectionMin: 200,
  sectionMax: 800,
  step: 10,
  /** Prior correlation of the abilities; below the observed .79, because practice does not transfer. */
  correlation: 0.7,
  /** Variance of an ability after n answers: base + perAnswer / n, plus the part of unseen skills. */
  measurement: { base: 0.07, perAnswer: 7.3, uncovered: 2, drill: 10 },
  /** Ability per log-odds of mastery. */
  masteryLink: 0.7,
  /** Trust in traced mastery by parameter source, and variance of the common error without trust. */
  trust: { fitted: 1, manual: 1, prior: 0.75, default: 0.25 },
  distrust: 0.1,
  /** If mastery and filter differ by more than `beyond`, the sd grows by this share of the excess. */
  disagreement: { beyond: 0.5, share: 0.6 },
  /** Minimum weight of a section without placed skills: a coarse skill covers many fine ones. */
  leastSkills: 20,
  /** From seen to unseen skills (`transferOf`); at most `mostWrong` wrong answers count per skill. */
  transfer: { high: 2, low: 5, perWrong: 2, mostWrong: 20, otherSection: 0.7, agreement: 0.7 },
  /** Log-odds by which one answer may move a skill from the ability's prediction. */
  logitPerAnswer: 1,
  /** Process variance per day ahead, and its share common to both sections. */
  driftPerDay: 0.0007,
  driftCorrelation: 0.5,
  /** Standard error of one section's test, in points. */
  testError: 30,
  defaultLevel: 0.8,
} as const;

/** Learners that make a skill outside the catalogue known, so that rare skills do not lower coverage. */
export const learnersOfKnownSkill = 5;

/**
 * Online ability filter (Bayesian Rasch), simulated. After `repeats` answers on a skill another counts half.
 * Each answer returns the covariance to the prior by `drift`, or by `fallingDrift` while results fall.
 */
export const abilityModel = { variance: 1, drift: 0.0005, fallingDrift: 0.01, bound: 4, repeats: 8 } as const;

/** Recent results compared with earlier ones. Simulated and tried on answer logs. */
export const trendModel = {
  /** Weight of the newest answer: averages over about 70 and 100 answers. */
  shareRate: 0.015,
  changeRate: 0.01,
  minAttempts: 5,
  /** Falls up to `noChange` are ignored; `clearChange` is three standard errors of a constant learner. */
  noChange: 0.05,
  clearChange: 0.1,
  /** After `minAnswers`: no learning at a share right of `guessing`, full learning from `learningFrom`. */
  guessing: 0.2,
  learningFrom: 0.5,
  minAnswers: 30,
  /** Bias of predictions: gain, gain while results change, factor per answer. */
  biasRate: 0.015,
  changingBiasRate: 0.06,
  biasFading: 0.998,
} as const;

/** A day before a new learner's first answer counts as `unknownDay` of an active day. */
export const activityModel = { days: 14, unknownDay: 1 / 7 } as const;

/** Roll-forward of mastery: decided here, between published gains and their part due to practice. */
export const projectionModel = {
  /** Share of pLearn that shows on a test, and of that if learning is slowed (plateau, rapid answers). */
  learningShare: 0.15,
  slowedShare: 0.25,
  /** Nothing is forgotten from this many active days of 14; fewer forget in proportion. */
  activeDays: 4,
  /** Half-lives after so many days of future practice, with this share of right answers (simulated). */
  spacingDays: 45,
  rightShare: 0.8,
  /** Of an ability, on the population's scale. */
  maxChange: 1.5,
} as const;

/** Difference of two moving averages of daily mastery, with half-lives of `shortDays` and `longDays`. */
export const momentumModel = {
  shortDays: 3,
  longDays: 14,
  threshold: 0.01,
  minAttempts: 5,
  /** Maximum number of idle days that are closed. */
  idleClosings: 14,
} as const;

/** `minDays` days with answers for a slope; `level` of its interval. */
export const velocityModel = { minDays: 5, level: 0.9, shortDays: 7, longDays: 28 } as const;

export const goalModel = {
  baselineAnswers: 20,
  defaultBaseline: 1030,
  horizonDays: 365,
  /** A total must come back by so many points before the same alert is raised again: decided here. */
  alertMargin: 20,
} as const;

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

/** Right answers alone must lead a fitted skill here, so that it passes `masteredAt.mastery`. */
export const reachableMastery = 0.96;

/** For manual parameters: 1 - slip > guess by this margin, else right answers lower mastery. */
export const guessSlipMargin = 0.05;

/** For manual parameters: wider than fits, because people know of skills without answers. */
export const manualBounds: Range = { low: 0.001, high: 0.999 };
export const manualForget: Range = { low: 0, high: 0.1 };

/** P* (`pStar`) stays below this share of pInit, so that a first wrong answer lowers mastery. */
export const wrongAnswerShare = 0.9;

/**
 * Strength of the prior means, in learners (pInit) or expected visits (simulated). pLearn is high: with fast
 * learning, two right answers after ten wrong ones would look like mastery.
 */
export const priorStrengths: BktParameters = { pInit: 20, pLearn: 250, pGuess: 40, pSlip: 60, pForget: 60 };

/** For tenants without large skills; never served. */
export const fitPriorMeans: BktParameters = {
  pInit: 0.35,
  pLearn: 0.07,
  pGuess: 0.25,
  pSlip: 0.1,
  pForget: 0.015,
};

export const fitModel = {
  /** A fit reads the first attempts of each learner on a skill; a longer pause starts a new sequence. */
  maxAttempts: 60,
  splitDays: 30,
  /** Skills from `priorLearners` make the prior means. Skills below `minLearners` are served the prior. */
  priorLearners: 200,
  minLearners: 20,
  /** With fewer fitted skills, cold skills are served the defaults. */
  minFittedSkills: 5,
  tolerance: 1e-4,
  maxIterations: 60,
  /** Share of learners held out, and the log loss that a publication may add. */
  heldOutShare: 0.2,
  heldOutSlack: 0.001,
} as const;

/** Half of the shift of a Rasch model: decided here. */
export const difficultyModel = { scale: 0.5, limit: 3 } as const;

/**
 * Mastery above the prior halves in `baseDays` after a grace. Each `doublingDays` more days with a right
 * answer double this time (spacing). The base is an assumption.
 */
export const forgettingModel = { baseDays: 30, doublingDays: 2, maxDays: 365, graceDays: 1 } as const;

/** Progress below `minSlope` per attempt, at an upper bound of `z` standard errors (simulated). */
export const plateauModel = {
  decay: 0.9,
  minSlope: 0.02,
  z: 1.2816,
  minAttempts: 12,
  hold: 3,
  resetDays: 14,
  /** The sums of weights are constant from here: .9^400 times 400² is below 1e-13. */
  maxAttempts: 400,
} as const;

/** Wise & Ma 2012; Kong, Wise & Bhola 2007. Decided here: flag, window, counts, `awaySeconds`. */
export const rapidModel = {
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

/** Likelihood ratios of confidence 1 to 5 with a right answer: decided here. */
export const confidenceRatios: readonly number[] = [0.6, 0.8, 1, 1.15, 1.3];

/** Efficiency (docs/model.md), decided here. The views in warehouse/schema/views.ts repeat the constants. */
export const paceModel = {
  /** ln 75 s, the target of `nextItemsModel`, and the prior's weight in answers. */
  prior: { logMean: Math.log(75), logSd: 0.6, accuracy: 0.75, answers: 20 },
  minVariance: 0.04,
  /** Limit of the standardised ln time, in both directions. */
  maxSlowness: 1.5,
  /** Of a correct guess. */
  chance: 0.2,
  /** About the standard deviation of one answer. */
  accuracySd: 0.5,
  /** Relative to accuracy, which has 1, because a test counts correct answers. */
  timeWeight: 0.6,
  /** Minimum weight of the newest answer. */
  minStep: 0.05,
  minTimed: 3,
} as const;

/** Decided here; z is the one-sided 5 % point of the normal distribution. */
export const calibrationModel = { minAnswers: 10, minBias: 0.15, z: 1.645 } as const;

/** A skill of `strongMastery` has faded after losing `fadedShare` of its mastery. */
export const adviceModel = {
  /** They have 88 % of the weight in the plateau test. */
  plateauAttempts: 20,
  strongMastery: 0.8,
  fadedShare: 0.3,
  /** Characters, by contract. */
  maxLength: 200,
} as const;

export const gainModel = {
  /** For skills without timed answers. */
  secondsPerAnswer: 75,
  /** Answers that restore what a strong skill lost to forgetting. */
  reviewAnswers: 3,
  /** Limits of a section's mean mastery. Beyond them a small change would be worth too many points. */
  mean: { low: 0.05, high: 0.95 },
} as const;

/** Decided here. Faded skills: `adviceModel`. */
export const studyModel = {
  maxEntries: 5,
  /** Minimum values. 1 of slowness is one standard deviation of ln seconds. */
  slow: { timed: 10, mastery: 0.7, accuracy: 0.6, slowness: 1 },
  /** Mastery below, attempts from. */
  weak: { mastery: 0.6, attempts: 5 },
  /** A section is explored up to this share of its known weight. */
  coverage: 0.5,
  /** Gains are given in points from this many answers in the section. */
  pointsFrom: 20,
} as const;

/** Decided here, except the target. */
export const nextItemsModel = {
  /** Klinkenberg, Straatemeier & van der Maas 2011: .75, with choices of .6 and .9. */
  target: { low: 0.5, high: 0.95, start: 0.75 },
  maxItems: 1000,
  defaultLimit: 10,
  /** Of one skill, if others are available. */
  maxInRow: 3,
  /** A question answered right within this time comes last. */
  recentMs: 3_600_000,
  /** Logits around the target that count as the right level: .65 to .83 around .75. */
  levelWidth: 0.5,
  /** Largest probability (and complement) for distances, so that log-odds stay finite. */
  surest: 1 - 1e-9,
} as const;

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

/** Chosen by cross-validation on two real logs, with and without times; no optimum is sharp. */
export const accuracyConstants = {
  /** Horizons of fits: days, or answers in a log without times. */
  horizons: { days: [7, 30, 90], answers: [20, 50, 100] },
  /** Minimum answers inside the horizon. */
  minAnswers: 10,
  /** Moments: after 1, 2, 3, 4 answers, then four per doubling. */
  cuts: { from: 5, perDoubling: 4 },
  /** Lower limits of the calibrated bands, in answers so far. */
  bands: [1, 5, 10, 20, 40, 80, 160, 320, 640],
  /** Prior answers at the population's share: in the mean, and in the variance. */
  priorAnswers: 8,
  variancePrior: 5,
  /** Reach around the recent share in log-odds: `slack` / sqrt(n) * (1 + `novice` / n), n up to `most`. */
  nearRecent: { most: 133, prior: 1, slack: 1, novice: 80 },
  /** The part of the variance from lasting changes is multiplied by sqrt(horizon / wanderHorizon). */
  wanderHorizon: 90,
  /** Limits of shares before log-odds. */
  shareBounds: { low: 0.02, high: 0.98 },
  fit: {
    maxLearners: 3000,
    minLearners: 20,
    minCases: 200,
    /** Cross-validation parts for the widths. */
    parts: 5,
    /** Shares of all moments before the cut times of the widths. */
    pasts: [0.4, 0.6, 0.8],
    /** Ridge towards the start figures, in learners. */
    ridgeLearners: 3,
    /** Learners at which a band's factor, or a tail's quantile, counts half. */
    bandLearners: 30,
    tailLearners: 2,
    /** The same for a cell of history and horizon. */
    cellLearners: 60,
    cellTailLearners: 8,
    leastVariance: 1e-4,
    factor: { low: 0.2, high: 5 },
  },
  /** Tolerated distance of the 80 % interval's coverage from .80. */
  coverageSlack: 0.04,
} as const;
