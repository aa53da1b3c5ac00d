/** Our choices (docs/api.md, "Classes"). */
export const classConstants = {
  /** A learner struggles with a skill on a plateau, or below this expected accuracy after so many answers. */
  struggling: { below: 0.6, minAnswers: 3 },
  /** Level of intervals, and level from which a rise is listed. `minAnswers`: of one learner, in each period. */
  change: { minLearners: 5, level: 0.8, listedLevel: 0.95, minAnswers: 20 },
  reteach: { minLearners: 2, minShare: 1 / 3 },
  /** Learners who answered in the `activeDays` before. */
  idle: { days: 7, activeDays: 28 },
  goal: { withinDays: 60, below: 0.5 },
  /** At most so many of the latest answers are right. */
  stuck: { latest: 12, atMost: 8 },
  /** Skills without answers in so many days need nobody today. */
  recentDays: 14,
  listed: { attention: 10, others: 5 },
} as const;
