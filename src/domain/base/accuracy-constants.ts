/** Chosen by cross-validation on two real logs, with and without times. No optimum is sharp. */
export const accuracyConstants = {
  /** Forecast horizons in days, or in answers if the log has no times. */
  horizons: { days: [7, 30, 90], answers: [20, 50, 100] },
  /** Minimum answers within the horizon. */
  minAnswers: 10,
  /** Forecast moments: after 1, 2, 3 and 4 answers, then four per doubling. */
  cuts: { from: 5, perDoubling: 4 },
  /** Lower limits of the history bands, in answers. */
  bands: [1, 5, 10, 20, 40, 80, 160, 320, 640],
  /** Prior answers at the population's share, for the mean and for the variance. */
  priorAnswers: 8,
  variancePrior: 5,
  /**
   * Allowed distance from the recent share, in log-odds: `slack` / sqrt(n) * (1 + `novice` / n), n at most
   * `most`.
   */
  nearRecent: { most: 133, prior: 1, slack: 1, novice: 80 },
  /** Lasting changes contribute sqrt(horizon / wanderHorizon) times their variance. */
  wanderHorizon: 90,
  shareBounds: { low: 0.02, high: 0.98 },
  fit: {
    maxLearners: 3000,
    minLearners: 20,
    minCases: 200,
    parts: 5,
    /** Cut times of the interval fits, as shares of all forecast moments. */
    pasts: [0.4, 0.6, 0.8],
    /** Ridge towards the initial coefficients, in learners. */
    ridgeLearners: 3,
    /** Learners at which a band's factor, or a tail's quantile, has half of the weight. */
    bandLearners: 30,
    tailLearners: 2,
    /** The same for one combination of history and horizon. */
    cellLearners: 60,
    cellTailLearners: 8,
    leastVariance: 1e-4,
    factor: { low: 0.2, high: 5 },
  },
  /** Tolerated distance of the 80 % interval's coverage from .80. */
  coverageSlack: 0.04,
} as const;
