import { type Answer, clamp, logit, sigmoid } from '../base/common.js';
import { abilityModel, type BktParameters } from '../base/params.js';

/** Running estimate of a learner's ability in one section, on the logit scale of the population. */
export const newAbility = { theta: 0, variance: abilityModel.variance as number };

export type Ability = Readonly<typeof newAbility>;

/** Guess and slip imply a difficulty, so that ability 0 means mastery one half. @param attempts on the skill before */
export const abilityEvidence = (
  { isCorrect, questionDifficulty }: Pick<Answer, 'isCorrect' | 'questionDifficulty'>,
  { pGuess, pSlip }: Pick<BktParameters, 'pGuess' | 'pSlip'>,
  attempts: number,
) => ({
  isCorrect,
  difficulty: (questionDifficulty ?? 0) - logit((1 - pSlip + pGuess) / 2),
  weight: 1 / (1 + attempts / abilityModel.repeats),
});

/** A Bayesian Rasch filter with constant state (cf. Pelánek 2016). @param share of the section: 0, .5 or 1 */
export function updateAbility(
  ability: Ability,
  { isCorrect, difficulty, weight }: ReturnType<typeof abilityEvidence>,
  share: number,
): Ability {
  if (share === 0) return ability;
  const information = share * weight;
  const drifted = Math.min(ability.variance + abilityModel.processNoise, abilityModel.variance);
  const expected = sigmoid(ability.theta - difficulty);
  const variance = 1 / (1 / drifted + information * expected * (1 - expected));
  const step = variance * information * ((isCorrect ? 1 : 0) - expected);
  return { theta: clamp(ability.theta + step, -abilityModel.bound, abilityModel.bound), variance };
}
