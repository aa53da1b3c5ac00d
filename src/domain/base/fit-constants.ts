import type { BktParameters } from './bkt-parameters.js';

/** Right answers alone must lead a fitted skill here, so that it passes `masteredAt.mastery`. */
export const reachableMastery = 0.96;

/**
 * Strength of the prior means, in learners (pInit) or expected visits (simulated). pLearn is high: with fast
 * learning, two right answers after ten wrong ones would look like mastery.
 */
export const priorStrengths: BktParameters = { pInit: 20, pLearn: 250, pGuess: 40, pSlip: 60, pForget: 60 };

/** For tenants without large skills; never served. */
export const fitPriorMeans: BktParameters = {
  pInit: 0.35,
  pLearn: 0.07,
  pGuess: 0.25,
  pSlip: 0.1,
  pForget: 0.015,
};

export const fitModel = {
  /** A fit reads the first attempts of each learner on a skill; a longer pause starts a new sequence. */
  maxAttempts: 60,
  splitDays: 30,
  /** Skills from `priorLearners` make the prior means. Skills below `minLearners` are served the prior. */
  priorLearners: 200,
  minLearners: 20,
  /** With fewer fitted skills, cold skills are served the defaults. */
  minFittedSkills: 5,
  tolerance: 1e-4,
  maxIterations: 60,
  /** Share of learners held out, and the log loss that a publication may add. */
  heldOutShare: 0.2,
  heldOutSlack: 0.001,
} as const;
