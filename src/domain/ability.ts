import { abilityModel } from './params.js';
import { clamp, sigmoid } from './probability.js';

/** Running estimate of a learner's ability in one section, on the logit scale of the population. */
export interface Ability {
  readonly theta: number;
  readonly variance: number;
  /** Answers behind it; an answer on a skill without a section counts half in each. */
  readonly answers: number;
}

export const newAbility: Ability = { theta: 0, variance: abilityModel.variance, answers: 0 };

/**
 * One answer's update of the ability: a Bayesian Rasch filter with constant state (an Elo rating whose step
 * follows its own uncertainty; cf. Pelánek 2016).
 *
 * @param share how much of the answer belongs to this section, 0.5 or 1: it scales information and count
 * @param difficulty of the question on the same scale, 0 where unknown
 */
export function updateAbility(
  ability: Ability,
  isCorrect: boolean,
  share: number,
  difficulty: number,
): Ability {
  const drifted = Math.min(ability.variance + abilityModel.processNoise, abilityModel.variance);
  const expected = sigmoid(ability.theta - difficulty);
  const variance = 1 / (1 / drifted + share * expected * (1 - expected));
  const step = variance * share * ((isCorrect ? 1 : 0) - expected);
  return {
    theta: clamp(ability.theta + step, -abilityModel.bound, abilityModel.bound),
    variance,
    answers: ability.answers + share,
  };
}
