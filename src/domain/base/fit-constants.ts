import type { BktParameters } from './bkt-parameters.js';

/** Correct answers alone must lead a fitted skill to this mastery. */
export const minReachableMastery = 0.96;

/**
 * Weight of the prior means in learners (pInit) or expected visits; simulated. A weaker prior of pLearn would allow
 * fast learning: two correct answers after ten wrong ones would look like mastery.
 */
export const priorStrengths: BktParameters = { pInit: 20, pLearn: 250, pGuess: 40, pSlip: 60, pForget: 60 };

/** Prior means of the first round, and of tenants with too few fitted skills. Never served. */
export const fitPriorMeans: BktParameters = {
  pInit: 0.35,
  pLearn: 0.07,
  pGuess: 0.25,
  pSlip: 0.1,
  pForget: 0.015,
};

export const fitConstants = {
  /** Weight of a growth factor of 1; a learner's evidence has the same unit. */
  growthPrior: 50,
  /** A fit reads the first answers per learner and skill. A longer pause splits the sequence. */
  maxAttempts: 60,
  splitDays: 30,
  /** Skills from `priorLearners` define the prior. Skills below `minLearners` use it. */
  priorLearners: 200,
  minLearners: 20,
  /** With fewer fitted skills, the other skills use the defaults. */
  minFittedSkills: 5,
  tolerance: 1e-4,
  maxIterations: 60,
  /** Share of held-out learners, and tolerated increase of their log loss. */
  heldOutShare: 0.2,
  heldOutSlack: 0.001,
} as const;
