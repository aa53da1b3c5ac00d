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
