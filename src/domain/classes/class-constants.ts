/** Our choices (docs/classes.md). */
export const classConstants = {
  /** A learner struggles with a skill on a plateau, or below this expected accuracy after so many answers. */
  struggling: { below: 0.6, minAnswers: 3 },
  change: { minLearners: 5, level: 0.8 },
  /** Conditions to list a change: its interval excludes 0. `minAnswers`: of one learner, in each period. */
  rise: { minLearners: 8, minAnswers: 20, level: 0.98 },
  reteach: { minLearners: 2, minShare: 1 / 3 },
  /** No answers for `days`, but answers in the `activeDays` before. */
  idle: { days: 7, activeDays: 28 },
  goal: { withinDays: 60, below: 0.5 },
  /** At most so many of the latest answers are right. */
  stuck: { latest: 12, atMost: 8 },
  /** Reasons name only skills with answers in so many days. */
  recentDays: 14,
  listed: { attention: 10, others: 5 },
} as const;

type SkillStanding = Readonly<Record<'expected' | 'answers', number> & { isStuck: boolean }>;

/** @param skill expected accuracy (0 to 1) and answers of a learner. Stuck: on a plateau. */
export const isStruggling = ({ expected, answers, isStuck }: SkillStanding): boolean =>
  isStuck || (expected < classConstants.struggling.below && answers >= classConstants.struggling.minAnswers);
