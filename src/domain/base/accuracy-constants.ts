/** Chosen by cross-validation on two real logs. */
export const accuracyConstants = {
  /** Days, or answers if the log has no times. */
  horizons: { days: [7, 30, 90], answers: [20, 50, 100] },
  minAnswers: 10,
  /** After 1, 2, 3 and 4 answers, then four times per doubling. */
  cuts: { from: 5, perDoubling: 4 },
  bands: [1, 5, 10, 20, 40, 80, 160, 320, 640],
  /** Weight of the population's share, in answers. */
  priorAnswers: 8,
  variancePrior: 5,
  /** Distance from the recent share: at most `slack` / sqrt(n) * (1 + `novice` / n) logits, n <= `most`. */
  nearRecent: { most: 133, prior: 1, slack: 1, novice: 80 },
  /** The variance of lasting changes is multiplied by sqrt(horizon / wanderHorizon). */
  wanderHorizon: 90,
  shareBounds: { low: 0.02, high: 0.98 },
  fit: {
    maxLearners: 3000,
    minLearners: 20,
    minCases: 200,
    /** Groups of learners for cross-validation, and cut times as shares of all cases. */
    parts: 5,
    pasts: [0.4, 0.6, 0.8],
    ridgeLearners: 3,
    /** Learners at which an estimate has half of the weight. */
    bandLearners: 30,
    tailLearners: 2,
    cellLearners: 60,
    cellTailLearners: 8,
    leastVariance: 1e-4,
    factor: { low: 0.2, high: 5 },
  },
  coverageSlack: 0.04,
  /** Recalibration of intervals by the outcomes of recent forecasts. Chosen on one real and 13 simulated logs. */
  calibration: {
    halfLifeDays: 30,
    maxAgeDays: 180,
    /** Learners at which an estimate has half of the weight. */
    shrinkLearners: 15,
    /** Part of a past shift that is expected to last. The rest counts as variance. */
    lastingShift: 0.5,
    /** Limit of a deviation, in standard deviations. */
    maxDeviation: 3,
    factor: { low: 0.4, high: 2.5 },
  },
} as const;
