import {
  type BktParameters,
  difficultyConstants,
  fitBounds,
  forgettingConstants,
  masteryBounds,
} from '../base/bkt-parameters.js';
import { clamp, dayMs, logit, mapNonEmpty, type NonEmpty } from '../base/common.js';
import type { SkillState } from './learner-states.js';

type GuessSlip = Pick<BktParameters, 'pGuess' | 'pSlip'>;

/**
 * Bayesian Knowledge Tracing (Corbett & Anderson 1995) of one skill. @param shift logits @param guard a wrong answer
 * never raises mastery, a correct one never lowers it @param others probability that all other skills of the
 * question succeed
 */
export function traceAnswer(
  parameters: BktParameters,
  mastery: number,
  isCorrect: boolean,
  shift = 0,
  guard = true,
  others = 1,
) {
  const item = shiftGuessSlip(parameters, shift);
  const before = clamp(mastery, masteryBounds.low, masteryBounds.high);
  const odds = (before / (1 - before)) * computeBayesFactor(item, isCorrect, others);
  const posterior = 1 / (1 + 1 / odds); // also valid for odds of 0 and infinity
  const retained = posterior * (1 - parameters.pForget);
  const learned = retained + (1 - posterior) * parameters.pLearn;
  const guarded = isCorrect ? Math.max(learned, before) : Math.min(learned, before);
  return {
    pCorrect: predictCorrect(before, item),
    /** Mastery before learning and forgetting. */
    posterior,
    masteryAfter: clamp(guard ? guarded : learned, masteryBounds.low, masteryBounds.high),
  };
}

export const predictCorrect = (mastery: number, { pGuess, pSlip }: GuessSlip): number =>
  mastery * (1 - pSlip) + (1 - mastery) * pGuess;

export interface SkillMastery {
  readonly parameters: BktParameters;
  readonly mastery: number;
}

/**
 * Conjunctive knowledge tracing (Koedinger, Pavlik, Stamper, Nixon & Ritter 2011): a correct answer needs every skill.
 * A wrong answer lowers a skill less if another skill probably failed. Equals `traceAnswer` for one skill.
 */
export function traceQuestion(skills: NonEmpty<SkillMastery>, isCorrect: boolean, shift = 0) {
  const suspects = isCorrect || skills.length === 1 ? [] : skills.map(limitMastery);
  return mapNonEmpty(skills, ({ parameters, mastery }, i) =>
    traceAnswer(parameters, mastery, isCorrect, shift, true, predictSkills(suspects, shift, i)),
  );
}

const limitMastery = ({ parameters, mastery }: SkillMastery): SkillMastery => ({
  parameters,
  mastery: clamp(mastery, masteryBounds.low, masteryBounds.high),
});

/** Probability that every skill succeeds. @param except index of a skill that is left out; -1: none */
export function predictSkills(skills: readonly SkillMastery[], shift: number, except = -1): number {
  let product = 1;
  for (let i = 0; i < skills.length; i++) {
    const { mastery, parameters } = skills[i] as SkillMastery;
    if (i !== except) product *= predictCorrect(mastery, shiftGuessSlip(parameters, shift));
  }
  return product;
}

/**
 * Geometric mean of the skills' chances, for the served probability: real questions with several skills are hardly
 * harder than others (docs/understand/model-results.md). @param product from `predictSkills`
 */
export const averageChance = (product: number, skills: number): number =>
  skills === 1 ? product : product ** (1 / skills);

/** If another skill fails, the answer is wrong and says nothing about this skill. Exact for `others` 1. */
function computeBayesFactor({ pGuess, pSlip }: GuessSlip, isCorrect: boolean, others: number): number {
  if (isCorrect) return (1 - pSlip) / pGuess;
  return computeFailure(pSlip, others) / computeFailure(1 - pGuess, others);
}

/** Probability of a wrong answer. @param failure probability that the skill fails */
export const computeFailure = (failure: number, others: number): number => failure * others + (1 - others);

/** KT-IDEM (Pardos & Heffernan 2011): logit guess - shift, logit slip + shift. Shift 0 is bit-identical. */
export function shiftGuessSlip(parameters: BktParameters, shift: number): GuessSlip {
  if (shift === 0) return parameters;
  const { pGuess, pSlip } = parameters;
  const ratio = Math.exp(-shift);
  return {
    pGuess: (pGuess * ratio) / (1 - pGuess + pGuess * ratio),
    pSlip: pSlip / (pSlip + (1 - pSlip) * ratio),
  };
}

/**
 * Limits guess and slip jointly; otherwise a correct answer to a harder question could count less. @param
 * difficulty logits, centred per skill
 */
export function computeDifficultyShift(
  { pGuess, pSlip }: BktParameters,
  difficulty: number,
  scale: number,
): number {
  const { itemGuess, itemSlip } = fitBounds;
  const harder = difficulty > 0;
  const guessRoom = logit(pGuess) - logit(harder ? itemGuess.low : itemGuess.high);
  const slipRoom = logit(harder ? itemSlip.high : itemSlip.low) - logit(pSlip);
  const shift = scale * clamp(difficulty, -difficultyConstants.limit, difficultyConstants.limit);
  return harder
    ? Math.min(shift, Math.max(0, Math.min(guessRoom, slipRoom)))
    : Math.max(shift, Math.min(0, Math.max(guessRoom, slipRoom))) + 0; // + 0 turns -0 into 0
}

/** Within the limits of all skills. @param difficulty logits, centred */
export function computeQuestionShift(
  skills: NonEmpty<Pick<SkillMastery, 'parameters'>>,
  difficulty: number,
  scale: number,
): number {
  let least = computeDifficultyShift(skills[0].parameters, difficulty, scale);
  for (let i = 1; i < skills.length; i++) {
    const shift = computeDifficultyShift((skills[i] as SkillMastery).parameters, difficulty, scale);
    if (Math.abs(shift) < Math.abs(least)) least = shift;
  }
  return least;
}

/** Below P* a wrong answer raises mastery (Shchepakin et al. 2024). Exact without forgetting. */
export const pStar = ({ pLearn, pGuess, pSlip }: BktParameters): number =>
  (pLearn * (1 - pGuess)) / (1 - pSlip - pGuess);

/** Largest pForget at which correct answers still lead to `mastery`. */
export function computeMaxForget({ pLearn, pGuess, pSlip }: BktParameters, mastery: number): number {
  const known = mastery * (1 - pSlip);
  const posterior = known / (known + (1 - mastery) * pGuess);
  return (posterior + (1 - posterior) * pLearn - mastery) / posterior;
}

/** Settles & Meeder 2016. */
export function computeHalfLife(correctDays: number): number {
  const { baseDays, doublingDays, maxDays } = forgettingConstants;
  return clamp(baseDays * 2 ** ((correctDays - 1) / doublingDays), baseDays, maxDays);
}

type RetentionInput = Pick<SkillState, 'correctDays' | 'lastAttemptAt' | 'attempts'>;

/** Remaining share of mastery above pInit. @param now Unix milliseconds */
export function computeRetention(
  { attempts, correctDays, lastAttemptAt }: RetentionInput,
  now: number,
): number {
  const idleDays = (now - lastAttemptAt) / dayMs - forgettingConstants.graceDays;
  return attempts === 0 || idleDays <= 0 ? 1 : 2 ** (-idleDays / computeHalfLife(correctDays));
}

/** Decays towards pInit, never from below. */
export const applyForgetting = (mastery: number, pInit: number, retention: number): number =>
  mastery <= pInit || retention === 1 ? mastery : pInit + (mastery - pInit) * retention;

/** Mastery after forgetting; pInit before the first attempt. @param now Unix milliseconds */
export const computeEffectiveMastery = (
  pInit: number,
  skill: RetentionInput & Pick<SkillState, 'mastery'>,
  now: number,
): number =>
  skill.attempts === 0 ? pInit : applyForgetting(skill.mastery, pInit, computeRetention(skill, now));
