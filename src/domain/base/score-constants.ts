/** Means and sd come from SAT norms, the rest is simulated. */
export const scoreConstants = {
  // Without real test scores, the link from ability to score is an assumption.
  mean: { math: 510, rw: 520 },
  sd: 110,
  sectionMin: 200,
  sectionMax: 800,
  step: 10,
  /** Below the observed .79, because practice does not transfer. */
  correlation: 0.7,
  /** Variance of a measurement: base + perAnswer / n, plus a part for unseen skills. */
  measurement: { base: 0.07, perAnswer: 7.3, uncovered: 2, drill: 10 },
  masteryLink: 0.7,
  /** Trust in mastery by parameter source; error variance at trust 0. */
  trust: { fitted: 1, manual: 1, prior: 0.75, default: 0.25 },
  distrust: 0.1,
  /** A difference of mastery and ability above `beyond` adds this share of the excess to the sd. */
  disagreement: { beyond: 0.5, share: 0.6 },
  /** Minimum weight of a section without assigned skills: a coarse skill covers many fine ones. */
  leastSkills: 20,
  transfer: { high: 2, low: 5, perWrong: 2, mostWrong: 20, otherSection: 0.7, agreement: 0.7 },
  /** Limit per answer, in logits from the mastery that ability predicts. */
  logitPerAnswer: 1,
  /** Process variance per day; correlation between the sections. */
  driftPerDay: 0.0007,
  driftCorrelation: 0.5,
  /** Standard error of one section's test, in points. */
  testError: 30,
  defaultLevel: 0.8,
  /** Our choice. Differences of two reductions of a range below this do not name a section in the advice. */
  minSectionDifference: 0.01,
  /** Our choice. No advice for a smaller reduction, as a share of the range. */
  minRangeReduction: 0.1,
} as const;

/** In days. Abilities fade as slowly as the best practised skills, after a longer time. */
export const abilityFading = { graceDays: 14, halfLife: 365 } as const;

/** A skill outside the catalogue needs so many learners; rare skills would lower the coverage. */
export const minRegisteredLearners = 5;

/** Our choice, between published score gains and their part due to practice. */
export const projectionConstants = {
  /** Share of pLearn that shows on a test; factor for slow learning. */
  learningShare: 0.15,
  slowedShare: 0.25,
  /** Days of practice, of 14, that prevent all forgetting. */
  activeDays: 4,
  /** Part of a skill in future practice: its answers + `priorAnswers`, halved per `recentDays` after the first. */
  priorAnswers: 5,
  recentDays: 28,
  /** Future practice that lengthens half-lives (simulated). */
  spacingDays: 45,
  rightShare: 0.8,
  /** Of an ability, in standard deviations of the population. */
  maxChange: 1.5,
} as const;

/** Learning per answer that shows on a test. */
export const projectLearning = (pLearn: number): number => projectionConstants.learningShare * pLearn;

export const goalConstants = {
  baselineAnswers: 20,
  defaultBaseline: 1030,
  horizonDays: 365,
  /** Our choice: an alert, or the status `reached`, ends when its total is this far from the target. */
  alertMargin: 20,
  /** Lowest goal probability: for a new goal, to keep the status, and to return to it. */
  onTrack: { from: 0.5, kept: 0.4, again: 0.6 },
  /** Below: for a new goal, and to keep the status. */
  unlikely: { below: 0.15, kept: 0.25 },
} as const;
