/** Chosen by cross-validation on two real logs, with and without times; no optimum is sharp. */
export const accuracyConstants = {
  /** Horizons of fits: days, or answers in a log without times. */
  horizons: { days: [7, 30, 90], answers: [20, 50, 100] },
  /** Minimum answers inside the horizon. */
  minAnswers: 10,
  /** Moments: after 1, 2, 3, 4 answers, then four per doubling. */
  cuts: { from: 5, perDoubling: 4 },
  /** Lower limits of the calibrated bands, in answers so far. */
  bands: [1, 5, 10, 20, 40, 80, 160, 320, 640],
  /** Prior answers at the population's share: in the mean, and in the variance. */
  priorAnswers: 8,
  variancePrior: 5,
  /** Reach around the recent share in log-odds: `slack` / sqrt(n) * (1 + `novice` / n), n up to `most`. */
  nearRecent: { most: 133, prior: 1, slack: 1, novice: 80 },
  /** The part of the variance from lasting changes is multiplied by sqrt(horizon / wanderHorizon). */
  wanderHorizon: 90,
  /** Limits of shares before log-odds. */
  shareBounds: { low: 0.02, high: 0.98 },
  fit: {
    maxLearners: 3000,
    minLearners: 20,
    minCases: 200,
    /** Cross-validation parts for the widths. */
    parts: 5,
    /** Shares of all moments before the cut times of the widths. */
    pasts: [0.4, 0.6, 0.8],
    /** Ridge towards the start figures, in learners. */
    ridgeLearners: 3,
    /** Learners at which a band's factor, or a tail's quantile, counts half. */
    bandLearners: 30,
    tailLearners: 2,
    /** The same for a cell of history and horizon. */
    cellLearners: 60,
    cellTailLearners: 8,
    leastVariance: 1e-4,
    factor: { low: 0.2, high: 5 },
  },
  /** Tolerated distance of the 80 % interval's coverage from .80. */
  coverageSlack: 0.04,
} as const;
