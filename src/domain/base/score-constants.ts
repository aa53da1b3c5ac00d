/** Means and standard deviation from published SAT norms. The other values are simulated. */
export const scoreModel = {
  // The link from ability to score is an assumption, because we have no real test scores.
  mean: { math: 510, rw: 520 },
  sd: 110,
  sectionMin: 200,
  sectionMax: 800,
  step: 10,
  /** Prior correlation of the abilities. Below the observed .79, because practice does not transfer. */
  correlation: 0.7,
  /** Measurement variance after n answers: base + perAnswer / n, plus a part for unseen skills. */
  measurement: { base: 0.07, perAnswer: 7.3, uncovered: 2, drill: 10 },
  /** Change of ability per log-odds of mastery. */
  masteryLink: 0.7,
  /** Trust in mastery by parameter source, and variance of the common error at trust 0. */
  trust: { fitted: 1, manual: 1, prior: 0.75, default: 0.25 },
  distrust: 0.1,
  /**
   * If mastery and the ability filter differ by more than `beyond`, the sd grows by this share of the excess.
   */
  disagreement: { beyond: 0.5, share: 0.6 },
  /** Minimum weight of a section without assigned skills: one coarse skill covers many fine ones. */
  leastSkills: 20,
  /** From seen to unseen skills (`computeTransfer`). At most `mostWrong` wrong answers count per skill. */
  transfer: { high: 2, low: 5, perWrong: 2, mostWrong: 20, otherSection: 0.7, agreement: 0.7 },
  /** Maximum log-odds by which one answer moves a skill away from the ability's prediction. */
  logitPerAnswer: 1,
  /** Process variance per forecast day, and the share that both sections have in common. */
  driftPerDay: 0.0007,
  driftCorrelation: 0.5,
  /** Standard error of one section's test, in points. */
  testError: 30,
  defaultLevel: 0.8,
} as const;

/** Learners needed to register a skill outside the catalogue. Rare skills would lower the coverage. */
export const learnersOfKnownSkill = 5;

/** Our choice, between published score gains and the part attributed to practice. */
export const projectionModel = {
  /** Share of pLearn that shows on a test; factor for slow learning (plateau or rapid answers). */
  learningShare: 0.15,
  slowedShare: 0.25,
  /** Practice on this many of 14 days prevents forgetting. Fewer days prevent it in proportion. */
  activeDays: 4,
  /** Half-lives assume this much future practice and this share of correct answers (simulated). */
  spacingDays: 45,
  rightShare: 0.8,
  /** Maximum gain of ability, on the population's scale. */
  maxChange: 1.5,
} as const;

export const goalModel = {
  baselineAnswers: 20,
  defaultBaseline: 1030,
  horizonDays: 365,
  /** Our choice: points by which a total must recover before the same alert is raised again. */
  alertMargin: 20,
} as const;
