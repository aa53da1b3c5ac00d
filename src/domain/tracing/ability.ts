import type { BktParameters } from '../base/bkt-parameters.js';
import {
  type Answer,
  average,
  clamp,
  logit,
  type NonEmpty,
  type PerSection,
  sigmoid,
} from '../base/common.js';
import { scoreConstants } from '../base/score-constants.js';
import { abilityConstants } from './tracing-constants.js';

const { variance, bound, repeats, drift, fallingDrift, pauseHalfLife } = abilityConstants;
const priorCovariance = scoreConstants.correlation * variance;

/** Logits. */
export const newAbilities = {
  math: 0,
  rw: 0,
  mathVariance: variance as number,
  rwVariance: variance as number,
  covariance: priorCovariance,
};

export type Abilities = Readonly<typeof newAbilities>;

interface SkillDifficulty {
  readonly parameters: Pick<BktParameters, 'pGuess' | 'pSlip'>;
}

const computeEasiness = ({ parameters: { pGuess, pSlip } }: SkillDifficulty): number =>
  logit((1 - pSlip + pGuess) / 2);

/** Guess and slip imply a difficulty: ability 0 means mastery .5. Several skills have their mean difficulty. */
export const computeAbilityEvidence = (
  { isCorrect, questionDifficulty }: Pick<Answer, 'isCorrect' | 'questionDifficulty'>,
  skills: NonEmpty<SkillDifficulty>,
  attempts: number,
) => ({
  isCorrect,
  difficulty: (questionDifficulty ?? 0) - average(skills, computeEasiness),
  weight: 1 / (1 + attempts / repeats),
});

export type AbilityEvidence = ReturnType<typeof computeAbilityEvidence>;

/**
 * Bayesian Rasch filter (cf. Pelánek 2016). The covariance stays positive, so a correct answer cannot lower an
 * ability. @param shares 0, .5 or 1 @param pauseDays without an answer before this one; 0 for short pauses
 */
export function updateAbilities(
  abilities: Abilities,
  evidence: AbilityEvidence,
  shares: PerSection<number>,
  isFalling: boolean,
  pauseDays: number,
): Abilities {
  const { math, rw } = abilities;
  const pauseDrift = 1 - 2 ** (-pauseDays / pauseHalfLife);
  const selectDrift = (share: number): number =>
    Math.max(isFalling && share > 0 ? fallingDrift : drift, pauseDrift);
  const [forMath, forRw] = [selectDrift(shares.math), selectDrift(shares.rw)];
  const mathVariance = abilities.mathVariance + forMath * (variance - abilities.mathVariance);
  const rwVariance = abilities.rwVariance + forRw * (variance - abilities.rwVariance);
  // Positive definite for different rates.
  const covariance =
    Math.sqrt((1 - forMath) * (1 - forRw)) * abilities.covariance +
    Math.sqrt(forMath * forRw) * priorCovariance;
  const { information: i, surprise: inMath } = computeStep(math, evidence, shares.math);
  const { information: j, surprise: inRw } = computeStep(rw, evidence, shares.rw);
  // Inverse of (covariance matrix)^-1 + diag(i, j).
  const determinant = mathVariance * rwVariance - covariance * covariance;
  const scale = 1 / (1 + i * mathVariance + j * rwVariance + i * j * determinant);
  const newMath = (mathVariance + j * determinant) * scale;
  const newRw = (rwVariance + i * determinant) * scale;
  const shared = covariance * scale;
  return {
    math: clamp(math + newMath * inMath + shared * inRw, -bound, bound),
    rw: clamp(rw + shared * inMath + newRw * inRw, -bound, bound),
    mathVariance: newMath,
    rwVariance: newRw,
    covariance: shared,
  };
}

function computeStep(ability: number, { isCorrect, difficulty, weight }: AbilityEvidence, share: number) {
  const counts = share * weight;
  const expected = sigmoid(ability - difficulty);
  return {
    information: counts * expected * (1 - expected),
    surprise: counts * ((isCorrect ? 1 : 0) - expected),
  };
}
