/** A skill of at least `strongMastery` needs a review after losing `fadedShare` of its mastery. */
export const adviceConstants = {
  /** These have 88 % of the weight in the plateau test. */
  plateauAttempts: 20,
  strongMastery: 0.8,
  fadedShare: 0.3,
  /** Characters; the API guarantees it. */
  maxLength: 200,
} as const;

export const gainConstants = {
  /** For skills without times. */
  secondsPerAnswer: 75,
  /** Answers that restore what a strong skill lost. */
  reviewAnswers: 3,
  /** Near 0 and 1, small changes would be worth too many points. */
  mean: { low: 0.05, high: 0.95 },
} as const;

/** Our choice. */
export const studyConstants = {
  maxEntries: 5,
  /** `slow`: minimum values, slowness in standard deviations of ln seconds. `weak`: below this mastery. */
  slow: { timed: 10, mastery: 0.7, accuracy: 0.6, slowness: 1 },
  weak: { mastery: 0.6, attempts: 5 },
  /** EXPLORE applies while less of the section's weight has answers. */
  coverage: 0.5,
  /** Answers in a section before texts name a gain in points. */
  pointsFrom: 20,
} as const;

/** Our choice, except the target. */
export const nextItemsConstants = {
  /** Klinkenberg, Straatemeier & van der Maas 2011. */
  target: { low: 0.5, high: 0.95, start: 0.75 },
  maxItems: 1000,
  defaultLimit: 10,
  maxInRow: 3,
  /** An item answered correctly within this time comes last. */
  recentMs: 3_600_000,
  /** Logits around the target. */
  levelWidth: 0.5,
  /** Limit for distances, so that log-odds stay finite. */
  maxProbability: 1 - 1e-9,
} as const;
