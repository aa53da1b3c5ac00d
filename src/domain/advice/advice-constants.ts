/** Minimum mastery, and the loss at which a strong skill needs a review. */
export const adviceModel = {
  /** They have 88 % of the weight in the plateau test. */
  plateauAttempts: 20,
  strongMastery: 0.8,
  fadedShare: 0.3,
  /** Characters, an API guarantee. */
  maxLength: 200,
} as const;

export const gainModel = {
  /** For skills without timed answers. */
  secondsPerAnswer: 75,
  /** Answers needed to restore a forgotten strong skill. */
  reviewAnswers: 3,
  /** Near 0 and 1, a small change would be worth too many points. */
  mean: { low: 0.05, high: 0.95 },
} as const;

/** Our choice. */
export const studyModel = {
  maxEntries: 5,
  /** Minimum values; slowness in standard deviations of ln seconds. */
  slow: { timed: 10, mastery: 0.7, accuracy: 0.6, slowness: 1 },
  /** Maximum mastery, minimum attempts. */
  weak: { mastery: 0.6, attempts: 5 },
  /** Maximum share of a section's weight with answers for EXPLORE. */
  coverage: 0.5,
  /** Minimum answers in the section for a gain in points. */
  pointsFrom: 20,
} as const;

/** Our choice, except the target. */
export const nextItemsModel = {
  /** Klinkenberg, Straatemeier & van der Maas 2011: .75, with choices of .6 and .9. */
  target: { low: 0.5, high: 0.95, start: 0.75 },
  maxItems: 1000,
  defaultLimit: 10,
  /** Consecutive items of one skill. */
  maxInRow: 3,
  /** Items answered correctly within this time come last. */
  recentMs: 3_600_000,
  /** Logits around the target: .65 to .83 for .75. */
  levelWidth: 0.5,
  /** Limits p, so that log-odds stay finite. */
  surest: 1 - 1e-9,
} as const;
