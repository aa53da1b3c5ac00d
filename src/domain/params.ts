/**
 * Every constant of the models, in one versioned place: changing one changes answers, so it changes
 * `modelVersion` too, and every attempt row says under which version it was counted.
 */

/** Version of the formulas and constants below. */
export const modelVersion = 1;

/** The four parameters of Bayesian Knowledge Tracing for one skill, each a probability. */
export interface BktParameters {
  /** Probability that the skill is mastered before the first attempt. */
  readonly pInit: number;
  /** Probability of learning the skill at an attempt, if it was not mastered. */
  readonly pLearn: number;
  /** Probability of a right answer without mastery. */
  readonly pGuess: number;
  /** Probability of a wrong answer with mastery. */
  readonly pSlip: number;
}

/** What a skill starts with until its parameters are fitted (the contract's defaults). */
export const defaultParameters: BktParameters = { pInit: 0.3, pLearn: 0.1, pGuess: 0.2, pSlip: 0.1 };

/** Version of a skill's parameters that were never fitted nor set. */
export const defaultParametersVersion = 0;

/** Mastery stays inside these bounds, so that no evidence is ever final. */
export const masteryBounds = { low: 0.001, high: 0.999 } as const;

/** A skill counts as mastered from here (Corbett & Anderson 1995), with enough attempts behind it. */
export const masteredAt = { mastery: 0.95, attempts: 5 } as const;

/**
 * Score model. The link from ability to score is an assumption until real test scores exist: population means
 * and sd from published SAT norms, the rest from simulation.
 */
export const scoreModel = {
  mean: { math: 510, rw: 520 },
  sd: 110,
  sectionMin: 200,
  sectionMax: 800,
  step: 10,
  /** Prior correlation of the two abilities; below the observed .79, for practice does not transfer. */
  correlation: 0.7,
  /** Measurement variance of an ability after n answers: base + perAnswer / n. */
  measurement: { base: 0.05, perAnswer: 7.3 },
  /** Mastery takes over from the ability filter as answers per seen skill pass this. */
  blendWeight: 4,
  masteryLink: 0.7,
  /** Process variance per day of looking ahead, and its share common to both sections. */
  driftPerDay: 0.0007,
  driftCorrelation: 0.5,
  /** Standard error of measurement of one section's test, in points. */
  testError: 30,
  defaultLevel: 0.8,
} as const;

/** Online ability filter (Bayesian Rasch): prior variance, its growth per answer, bounds of theta. */
export const abilityModel = { variance: 1, processNoise: 0.004, bound: 4 } as const;

/** Goals: the baseline is the total score when the learner first has this many answers. */
export const goalModel = { baselineAnswers: 20, defaultBaseline: 1030, horizonDays: 365 } as const;
