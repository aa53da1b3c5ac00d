import { type Answer, clamp, logit, type PerSection, sigmoid } from '../base/common.js';
import { abilityModel, type BktParameters, scoreModel } from '../base/params.js';

const { variance, bound, repeats, drift, fallingDrift } = abilityModel;
const priorCovariance = scoreModel.correlation * variance;

/**
 * Running estimate of a learner's abilities in both sections, on the logit scale of the population, with its covariance
 * matrix. An answer in one section moves both: the prior correlates them.
 */
export const newAbilities = {
  math: 0,
  rw: 0,
  mathVariance: variance as number,
  rwVariance: variance as number,
  covariance: priorCovariance,
};

export type Abilities = Readonly<typeof newAbilities>;

/** Guess and slip imply a difficulty, so that ability 0 means mastery one half. @param attempts on the skill before */
export const abilityEvidence = (
  { isCorrect, questionDifficulty }: Pick<Answer, 'isCorrect' | 'questionDifficulty'>,
  { pGuess, pSlip }: Pick<BktParameters, 'pGuess' | 'pSlip'>,
  attempts: number,
) => ({
  isCorrect,
  difficulty: (questionDifficulty ?? 0) - logit((1 - pSlip + pGuess) / 2),
  weight: 1 / (1 + attempts / repeats),
});

export type AbilityEvidence = ReturnType<typeof abilityEvidence>;

/**
 * A Bayesian Rasch filter of two correlated abilities with constant state (cf. Pelánek 2016). The covariance stays
 * positive, so a right answer never lowers and a wrong one never raises an ability.
 * @param shares of the answer in each section: 0, .5 or 1
 * @param isFalling the learner's recent results are clearly below the earlier ones: the filter forgets them faster
 */
export function updateAbilities(
  abilities: Abilities,
  evidence: AbilityEvidence,
  shares: PerSection<number>,
  isFalling: boolean,
): Abilities {
  const { math, rw } = abilities;
  const rate = isFalling ? fallingDrift : drift;
  const mathVariance = abilities.mathVariance + rate * (variance - abilities.mathVariance);
  const rwVariance = abilities.rwVariance + rate * (variance - abilities.rwVariance);
  const covariance = abilities.covariance + rate * (priorCovariance - abilities.covariance);
  const inMath = stepOf(math, evidence, shares.math);
  const inRw = stepOf(rw, evidence, shares.rw);
  // The inverse of (covariance matrix)^-1 + diag(information).
  const determinant = mathVariance * rwVariance - covariance * covariance;
  const scale =
    1 /
    (1 +
      inMath.information * mathVariance +
      inRw.information * rwVariance +
      inMath.information * inRw.information * determinant);
  const newMath = (mathVariance + inRw.information * determinant) * scale;
  const newRw = (rwVariance + inMath.information * determinant) * scale;
  const shared = covariance * scale;
  return {
    math: clamp(math + newMath * inMath.surprise + shared * inRw.surprise, -bound, bound),
    rw: clamp(rw + shared * inMath.surprise + newRw * inRw.surprise, -bound, bound),
    mathVariance: newMath,
    rwVariance: newRw,
    covariance: shared,
  };
}

function stepOf(ability: number, { isCorrect, difficulty, weight }: AbilityEvidence, share: number) {
  const counts = share * weight;
  const expected = sigmoid(ability - difficulty);
  return {
    information: counts * expected * (1 - expected),
    surprise: counts * ((isCorrect ? 1 : 0) - expected),
  };
}
