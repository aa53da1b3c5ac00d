/**
 * Every constant of the models: changing one changes answers, so it changes `modelVersion` too. "Decided here" is
 * without a source; "simulated" and "tuned" are explained in docs/model.md.
 */

export const modelVersion = 5;

export interface Range {
  readonly low: number;
  readonly high: number;
}

/** Probabilities of first mastery, of learning at an attempt, of a guess, of a slip, and of forgetting. */
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

/** Mastery stays inside these bounds, so that no evidence is ever final. */
export const masteryBounds: Range = { low: 0.001, high: 0.999 };

/** Mastered from here (.95: Corbett & Anderson 1995); smoothed mastery, attempts and expected accuracy: decided here. */
export const masteredAt = { mastery: 0.95, smoothed: 0.8, attempts: 5, accuracy: 0.75 } as const;

/** 80 % range of the true share: log-odds +- z sqrt(variance + perAnswer / (attempts + priorAnswers)). */
export const expectedModel = { z: 1.2816, variance: 0.6, perAnswer: 0.5, priorAnswers: 1 } as const;

/** Mastery that was reached counts as lost below this, so that answers around .95 do not reach it again and again: decided here. */
export const lostBelow = 0.8;

/** Abilities and scores: population means and sd from published SAT norms, the rest simulated. */
export const scoreModel = {
  // The link from ability to score is an assumption until real test scores exist.
  mean: { math: 510, rw: 520 },
  sd: 110,
  sectionMin: 200,
  sectionMax: 800,
  step: 10,
  /** Prior correlation of the two abilities; below the observed .79, for practice does not transfer. */
  correlation: 0.7,
  /** Measurement variance of an ability after n answers: base + perAnswer / n, and what unseen skills add. */
  measurement: { base: 0.07, perAnswer: 7.3, uncovered: 2, drill: 10 },
  /** Ability per log-odds of mastery. */
  masteryLink: 0.7,
  /** How far traced mastery is believed, by source of the parameters; variance of the common error at no trust at all. */
  trust: { fitted: 1, manual: 1, prior: 0.75, default: 0.25 },
  distrust: 0.1,
  /** Where mastery and filter differ in ability by more than `beyond`, the sd grows by this share of the rest. */
  disagreement: { beyond: 0.5, share: 0.6 },
  /** Least weight of a section's skills where the catalogue places none there: a coarse skill is many fine ones. */
  leastSkills: 20,
  /** What ability seen on some skills says about the rest (`transferOf`); wrong answers count up to `mostWrong` a skill. */
  transfer: { high: 2, low: 5, perWrong: 2, mostWrong: 20, otherSection: 0.7, agreement: 0.7 },
  /** Log-odds by which one right or wrong answer may move a skill from what ability predicts. */
  logitPerAnswer: 1,
  /** Process variance per day of looking ahead, and its share common to both sections. */
  driftPerDay: 0.0007,
  driftCorrelation: 0.5,
  /** Standard error of measurement of one section's test, in points. */
  testError: 30,
  defaultLevel: 0.8,
} as const;

/** Learners that make a skill known that was never set: rare or misspelt skills must not lower everybody's coverage. */
export const learnersOfKnownSkill = 5;

/**
 * Online ability filter (Bayesian Rasch). After `repeats` answers on a skill another says half as much. With each answer
 * the covariance returns to the prior by the share `drift`, by `fallingDrift` while results fall. All simulated.
 */
export const abilityModel = { variance: 1, drift: 0.0005, fallingDrift: 0.01, bound: 4, repeats: 8 } as const;

/** How recent results are compared with the learner's earlier ones. Simulated, and tried on answer logs. */
export const trendModel = {
  /** Weight of the newest answer: averages over about the last 70 and the last 100 answers. */
  shareRate: 0.015,
  changeRate: 0.01,
  /** Least number of earlier answers on a skill to compare with. */
  minAttempts: 5,
  /** Changes up to `noChange` are ignored. `clearChange` is three standard errors of a constant learner. */
  noChange: 0.05,
  clearChange: 0.1,
  /** After `minAnswers`, forecasts expect no learning at a share right of `guessing`, and full learning at `learningFrom`. */
  guessing: 0.2,
  learningFrom: 0.5,
  minAnswers: 30,
  /** Bias of predictions: gain per unit of surprise, the gain while results change, and the factor per answer. */
  biasRate: 0.015,
  changingBiasRate: 0.06,
  biasFading: 0.998,
} as const;

/** Practice in a window of days. A day before a new learner's first answer counts as `unknownDay` of an active one. */
export const activityModel = { days: 14, unknownDay: 1 / 7 } as const;

/** Roll-forward of mastery: decided here, to lie between published gains and what of them is due to practice. */
export const projectionModel = {
  /** Share of pLearn that an answer brings on a test, and of that where learning is slowed (plateau, rapid answers). */
  learningShare: 0.15,
  slowedShare: 0.25,
  /** Active days of 14 from which nothing is forgotten; fewer forget in proportion. */
  activeDays: 4,
  /** Half-lives are those after so many days of practice to come, with this chance of a right answer (simulated). */
  spacingDays: 45,
  rightShare: 0.8,
  /** Largest change of an ability, on the population's scale. */
  maxChange: 1.5,
} as const;

/** Momentum is the difference of two moving averages of daily mastery; `shortDays` and `longDays` are their half-lives. */
export const momentumModel = {
  shortDays: 3,
  longDays: 14,
  /** Smaller differences are no trend. */
  threshold: 0.01,
  minAttempts: 5,
  /** Days without answers that are closed at most. */
  idleClosings: 14,
} as const;

/** Velocity: a slope needs `minDays` days with answers; `level` is that of its interval. */
export const velocityModel = { minDays: 5, level: 0.9, shortDays: 7, longDays: 28 } as const;

/** Goals: the baseline is the total score when the learner first has this many answers. */
export const goalModel = {
  baselineAnswers: 20,
  defaultBaseline: 1030,
  horizonDays: 365,
  /** Points by which a total has to come back before the same alert is raised again: decided here. */
  alertMargin: 20,
} as const;

/**
 * Ranges of fitted parameters: at least 85 % right with mastery, 25 % without (Baker, Corbett & Aleven 2008).
 * `itemGuess` and `itemSlip` limit guess and slip of one question after the shift by its difficulty.
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

/** Right answers alone must lead a fitted skill to at least this mastery, so that they pass `masteredAt.mastery`. */
export const reachableMastery = 0.96;

/** Parameters set by hand: 1 - slip > guess by this margin, else a right answer would lower mastery. */
export const guessSlipMargin = 0.05;

/** Each parameter that is set by hand, and pForget; wider than any fit, for people know of skills that nobody has answered. */
export const manualBounds: Range = { low: 0.001, high: 0.999 };
export const manualForget: Range = { low: 0, high: 0.1 };

/** P* (`pStar`) stays below this share of pInit, so that the first wrong answer lowers mastery. */
export const wrongAnswerShare = 0.9;

/**
 * Strength of the prior means in a fit, in learners (pInit) or expected visits of the state (simulated). pLearn is high: with
 * fast learning on a skill, two right answers after ten wrong ones would look like mastery.
 */
export const priorStrengths: BktParameters = { pInit: 20, pLearn: 250, pGuess: 40, pSlip: 60, pForget: 60 };

/** Prior means while a tenant has no large skills to take them from; never served. */
export const fitPriorMeans: BktParameters = {
  pInit: 0.35,
  pLearn: 0.07,
  pGuess: 0.25,
  pSlip: 0.1,
  pForget: 0.015,
};

export const fitModel = {
  /** First attempts of a learner on a skill that a fit reads; a longer pause than so many days starts a new sequence. */
  maxAttempts: 60,
  splitDays: 30,
  /** Skills from here on make the tenant's prior means; skills with fewer than `minLearners` are served the prior. */
  priorLearners: 200,
  minLearners: 20,
  /** With fewer fitted skills than this, cold skills are served the defaults. */
  minFittedSkills: 5,
  /** Relative change of the penalised log likelihood at which EM stops. */
  tolerance: 1e-4,
  maxIterations: 60,
  /** Share of learners held out to choose options and to guard a publication, and the loss that may be lost. */
  heldOutShare: 0.2,
  heldOutSlack: 0.001,
} as const;

/** Logit shift of guess and slip per logit of difficulty: half of what a Rasch model says (decided here). */
export const difficultyModel = { scale: 0.5, limit: 3 } as const;

/**
 * Mastery above the prior halves in `baseDays` after a grace, half as fast every `doublingDays` further days with a
 * right answer (spacing). The base is an assumption.
 */
export const forgettingModel = { baseDays: 30, doublingDays: 2, maxDays: 365, graceDays: 1 } as const;

/**
 * Progress below `minSlope` per attempt counts as none, at an upper bound of `z` standard errors. Simulated: 6 to 7 %
 * of those who learn are ever flagged within 40 attempts, 81 to 99 % of those who do not.
 */
export const plateauModel = {
  decay: 0.9,
  minSlope: 0.02,
  z: 1.2816,
  minAttempts: 12,
  hold: 3,
  resetDays: 14,
  /** From here on the sums of the weights change no more: .9^400 times 400² is below 1e-13. */
  maxAttempts: 400,
} as const;

/** Rapid guessing (Wise & Ma 2012; Kong, Wise & Bhola 2007). Decided here: flag, window, counts, `awaySeconds`. */
export const rapidModel = {
  minAnswers: 30,
  defaultSeconds: 3,
  shareOfMean: 0.1,
  minSeconds: 1,
  maxSeconds: 10,
  /** At most 31, for the window is a whole number's bits. */
  window: 20,
  minTimed: 10,
  flagShare: 0.3,
  awaySeconds: 3600,
} as const;

/** Likelihood ratios of confidence 1 to 5 with a right answer, where it counts as evidence (decided here). */
export const confidenceRatios: readonly number[] = [0.6, 0.8, 1, 1.15, 1.3];

/** Efficiency (docs/model.md). The constants are decided here. The views in warehouse/schema/views.ts repeat them. */
export const paceModel = {
  /** Prior norm of a skill: ln 75 s, the target accuracy of `nextItemsModel`, and how many answers the prior weighs. */
  prior: { logMean: Math.log(75), logSd: 0.6, accuracy: 0.75, answers: 20 },
  minVariance: 0.04,
  /** Limit of the standardised ln time of an answer, in both directions. */
  maxSlowness: 1.5,
  /** Chance of a correct guess, for the correction for guessing. */
  chance: 0.2,
  /** Unit of corrected accuracy: about the standard deviation of one answer. */
  accuracySd: 0.5,
  /** Weight of time. Accuracy has weight 1, because a test counts correct answers. */
  timeWeight: 0.6,
  /** Weight of the newest answer once there are more than 1 / minStep of them. */
  minStep: 0.05,
  minTimed: 3,
} as const;

/** Flag of a calibration bias: decided here; z is the one-sided 5 % point of the normal distribution. */
export const calibrationModel = { minAnswers: 10, minBias: 0.15, z: 1.645 } as const;

/** Advice that comes with an answer. A skill of `strongMastery` has faded when it lost `fadedShare` of its mastery. */
export const adviceModel = {
  /** They carry 88 % of the weight in the test for a plateau. */
  plateauAttempts: 20,
  strongMastery: 0.8,
  fadedShare: 0.3,
  /** Characters of a text: the contract's bound. */
  maxLength: 200,
} as const;

export const gainModel = {
  /** Assumed where the answers on a skill were not timed. */
  secondsPerAnswer: 75,
  /** So many answers bring back what a strong skill lost to forgetting. */
  reviewAnswers: 3,
  /** Bounds of a section's mean mastery: beyond them a small change would be worth too many points. */
  mean: { low: 0.05, high: 0.95 },
} as const;

/** Advice that comes with a forecast: decided here; faded skills are those of `adviceModel`. */
export const studyModel = {
  maxEntries: 5,
  /** Minimum values. One unit of slowness is one standard deviation of ln seconds. */
  slow: { timed: 10, mastery: 0.7, accuracy: 0.6, slowness: 1 },
  /** Mastery below, attempts at least. */
  weak: { mastery: 0.6, attempts: 5 },
  /** A section is explored once this share of its known weight was answered. */
  coverage: 0.5,
  /** Answers in a section from which gains are given in points. */
  pointsFrom: 20,
} as const;

/** What to ask next. All but the target is decided here. */
export const nextItemsModel = {
  /** Success rate aimed at (.75; choices .6, .9: Klinkenberg, Straatemeier & van der Maas 2011). */
  target: { low: 0.5, high: 0.95, start: 0.75 },
  /** Questions asked about at most, and named where a caller does not say how many. */
  maxItems: 1000,
  defaultLimit: 10,
  /** Of one skill, where others wait. */
  maxInRow: 3,
  /** A question answered right within it waits until the others were asked. */
  recentMs: 3_600_000,
  /** Logits around the target that are called the right level: .65 to .83 around .75. */
  levelWidth: 0.5,
  /** A probability above it, or below its complement, is as far from the target as these: the log-odds stay finite. */
  surest: 1 - 1e-9,
} as const;

/** The served probability of a right answer: all tuned by validation inside the training part of real logs; none is sharp. */
export const predictionModel = {
  /** Ability filter: prior variance of the ability and its growth per answer, and the residual of a skill. */
  abilityVariance: 1,
  abilityNoise: 0.001,
  abilityBound: 5,
  residualVariance: 0.2,
  residualBound: 4,
  /** Weight of the newest answer in the moving averages. */
  recentRate: 0.3,
  slowRate: 0.03,
  /**
   * Variance of item effects, bounded. Prior answers: the larger of `startPrior` and priorOver / variance.
   */
  items: { variance: { low: 0.002, high: 4, start: 0.8, startItems: 2 }, priorOver: 5, startPrior: 10 },
  /** Log-odds of means differ by less than those of single answers: by sqrt(1 + pi/8 s^2), for an sd of s = 1.1 logits. */
  itemScale: 1.2,
  /** Elo passes: steps fall as step / (from + fall * answers); a later pass starts as after so many answers. */
  offsets: {
    passes: 2,
    learner: { step: 0.8, from: 1, fall: 0.1 },
    skill: { step: 0.3, from: 2, fall: 0.05, warm: 50 },
    item: { step: 1, from: 2.5, fall: 0.2, warm: 5 },
  },
  fit: {
    sweeps: 7,
    /** Sweeps that sum up the Hessian again; those after them take the last one. */
    freshSweeps: 3,
    /** Terms of skills, items and runs move no further than this in one step, in standardised units. */
    maxGroupStep: 1.5,
    /** Rare features count as if they varied by this much: else their weights diverge. */
    minSd: 0.3,
    /** Below so many answers the weights stay as they start, and only intercepts and slopes are fitted. */
    minAnswers: 5000,
    /** Ridges in standardised units: of the weights towards their start, of the terms towards 0. */
    ridge: 1000,
    skillRidge: 1.5,
    slopeRidge: 30,
    itemRidge: 1.25,
    itemAbilityRidge: 15,
    itemSlopeRidge: 7.5,
    runRidge: 1,
    /** Of the terms in tables: what was practised just before and the form on it, courses, retries, items before. */
    beforeRidge: 8,
    formRidge: 10,
    courseRidge: 4,
    skillRunRidge: 10,
    itemRunRidge: 5,
    patternRidge: 5,
    itemPairRidge: 8,
    maxPairStep: 1,
    /** Variance that a step of a streak counts as, for its ridge. */
    streakVariance: 0.16,
    beforeSweeps: 4,
    /** Pairs that have terms: answers that one needs, most of one skill or item, most of all. */
    skillPairs: { answers: 10, each: 256, all: 200_000 },
    itemPairs: { answers: 3, each: 32, all: 2_000_000 },
    /** Cross-fit: parts of the learners, answers at most, sweeps of the blocks before any part. */
    crossFit: { parts: 3, answers: 400_000, sweeps: 6, freshSweeps: 1 },
    /** What draws the spread of log-odds to 1, its bounds (on real logs it is about 1), and the longest step of a round. */
    calibration: { ridge: 50, low: 0.2, high: 2, maxStep: 0.5 },
    /** So many answers of one learner count for an item, and one on each further day. */
    itemAnswersEach: 8,
  },
} as const;

/** Rates and steps of `tracing/course.ts`, tried on answer logs and frozen. */
export const courseModel = {
  skills: 7,
  formRate: 0.3,
  firstTries: { step: 0.8, fall: 0.1, formRate: 0.1 },
  retries: { step: 0.6, fall: 0.05, formRate: 0.2 },
  retryOffsets: [0, -0.4, -0.8, -1.2],
  /** Each skill before counts for so much less than the one after it, and forms turn about a usual one. */
  fading: 0.65,
  usualForm: 0.15,
} as const;

/** Forecast of the share of right answers: chosen by cross-validation on two real logs, with and without times; none is sharp. */
export const accuracyConstants = {
  /** Horizons that fits learn from: days, or answers where a log has no times. */
  horizons: { days: [7, 30, 90], answers: [20, 50, 100] },
  /** With fewer answers inside the horizon, their share says little. */
  minAnswers: 10,
  /** Learners are looked at after 1, 2, 3, 4 answers, then four times per doubling from 5 on. */
  cuts: { from: 5, perDoubling: 4 },
  /** Least histories of the bands that are calibrated by themselves. */
  bands: [1, 5, 10, 20, 40, 80, 160, 320, 640],
  /** Answers at the population's share that count beside a learner's own: in the mean, and in the variance. */
  priorAnswers: 8,
  variancePrior: 5,
  /** Reach about the recent share in log-odds: `slack` / sqrt(n) * (1 + `novice` / n), n up to `most`. */
  nearRecent: { most: 133, prior: 1, slack: 1, novice: 80 },
  /** Horizon at which changes for good count once: they add up with its square root. */
  wanderHorizon: 90,
  /** Log-odds of a share of none or all right answers end here. */
  shareBounds: { low: 0.02, high: 0.98 },
  fit: {
    maxLearners: 3000,
    minLearners: 20,
    minCases: 200,
    /** Parts of the learners in turn forecast by a fit on the others: what widths are measured on. */
    parts: 5,
    /** Shares of all moments that lie behind the times from which later ones are forecast: what widths are measured on. */
    pasts: [0.4, 0.6, 0.8],
    /** Ridge towards the figures before a fit, as so many learners' cases. */
    ridgeLearners: 3,
    /** Learners with whom a band's own factor counts half, and a tail's own quantile where they are expected beyond it. */
    bandLearners: 30,
    tailLearners: 2,
    /** The same of a place of history and horizon by itself. */
    cellLearners: 60,
    cellTailLearners: 8,
    leastVariance: 1e-4,
    factor: { low: 0.2, high: 5 },
  },
  /** Distance of the 80 % interval's coverage from .80 that counts as none. */
  coverageSlack: 0.04,
} as const;
