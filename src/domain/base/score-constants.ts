/** Means and sd from SAT norms, the rest simulated. */
export const scoreModel = {
  // Without real test scores, the link from ability to score is an assumption.
  mean: { math: 510, rw: 520 },
  sd: 110,
  sectionMin: 200,
  sectionMax: 800,
  step: 10,
  /** Below the observed .79, because practice does not transfer. */
  correlation: 0.7,
  /** Variance: base + perAnswer / n, plus a part for unseen skills. */
  measurement: { base: 0.07, perAnswer: 7.3, uncovered: 2, drill: 10 },
  masteryLink: 0.7,
  /** Trust by parameter source; error variance at trust 0. */
  trust: { fitted: 1, manual: 1, prior: 0.75, default: 0.25 },
  distrust: 0.1,
  /** Larger differences of mastery and filter add this share to the sd. */
  disagreement: { beyond: 0.5, share: 0.6 },
  /** Without assigned skills: a coarse skill covers many fine ones. */
  leastSkills: 20,
  /** See `computeTransfer`. */
  transfer: { high: 2, low: 5, perWrong: 2, mostWrong: 20, otherSection: 0.7, agreement: 0.7 },
  /** Per answer, from the mastery that ability predicts. */
  logitPerAnswer: 1,
  /** Process variance per day; correlation of the sections. */
  driftPerDay: 0.0007,
  driftCorrelation: 0.5,
  /** Points. */
  testError: 30,
  defaultLevel: 0.8,
} as const;

/** Rare skills would lower the coverage. */
export const learnersOfKnownSkill = 5;

/** Our choice, between published gains and their part due to practice. */
export const projectionModel = {
  /** Share of pLearn that shows on a test; factor for slow learning. */
  learningShare: 0.15,
  slowedShare: 0.25,
  /** Prevents forgetting, of 14 days. */
  activeDays: 4,
  /** Future practice for half-lives (simulated). */
  spacingDays: 45,
  rightShare: 0.8,
  /** Change of ability. */
  maxChange: 1.5,
} as const;

export const goalModel = {
  baselineAnswers: 20,
  defaultBaseline: 1030,
  horizonDays: 365,
  /** Our choice: recovery before an alert is raised again. */
  alertMargin: 20,
} as const;
