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

export const goalModel = {
  baselineAnswers: 20,
  defaultBaseline: 1030,
  horizonDays: 365,
  /** A total must come back by so many points before the same alert is raised again: decided here. */
  alertMargin: 20,
} as const;
