/** What the served probability of a right answer is predicted from. An answer updates each figure in constant time. */

import { type Answer, clamp, sigmoid } from '../base/common.js';
import { predictionModel as model } from '../base/params.js';
import { type Asked, newCourse, updateCourse } from './course.js';

export const newLearnerTrace = {
  /** Ability in logits above a new learner's, and its variance. */
  ability: 0,
  variance: model.abilityVariance as number,
  /** Moving averages of the answers, right as .5 and wrong as -.5: over a few answers and over dozens. */
  recent: 0,
  slow: 0,
  right: 0,
  wrong: 0,
  wrongRun: 0,
  /** Of the last right answer, Unix milliseconds; 0: never. */
  lastRightAt: 0,
  course: newCourse,
};

export type LearnerTrace = Readonly<typeof newLearnerTrace>;

/** Figures of one learner on one skill. Places number a learner's answers over all skills from 1; 0: never. */
export const newSkillTrace = {
  /** How much better than by ability the learner does on the skill, logits. */
  residual: 0,
  lastPlace: 0,
  lastRightPlace: 0,
  /** Whole Unix seconds. */
  lastRightAt: 0,
  /** Right answers in a row up to the last one, or wrong ones as a negative number; at most 5 either way, 0 without any. */
  streak: 0,
};

export type SkillTrace = Readonly<typeof newSkillTrace>;

/** Figures of one learner on one item; counts stop at 255. */
export const newItemTrace = {
  right: 0,
  wrong: 0,
  /** Wrong answers in a row up to its last one, at most 8. */
  wrongRun: 0,
  /** Of its last four answers, one bit each, 1 for a wrong one; the newest in the lowest. */
  lastWrong: 0,
  /** Answers on other skills when last answered. Answers within the skill must not change the lag. */
  elsewhere: 0,
  /** Of the last answer, whole Unix seconds. */
  at: 0,
};

export type ItemTrace = Readonly<typeof newItemTrace>;

export interface Traces {
  readonly learner: LearnerTrace;
  readonly skill: SkillTrace;
  /** Null for an answer without an item; `newItemTrace` for an item of which nothing is remembered. */
  readonly item: ItemTrace | null;
}

export type TracedAnswer = Pick<Answer, 'isCorrect' | 'occurredAt'>;

const maxItemCount = 255;
export const maxItemRun = 8;
export const maxStreak = 5;
const lastAnswers = 4;
const allLast = (1 << lastAnswers) - 1;

/** @param place of the answer, from 1 @param abilityOffset log-odds of a right answer of a new learner on skill and item */
export function updateTraces(
  { learner, skill, item }: Traces,
  asked: Asked,
  { isCorrect, occurredAt }: TracedAnswer,
  place: number,
  skillAttempts: number,
  abilityOffset: number,
): Traces {
  const { ability, variance, residual } = filterAbility(learner, skill, isCorrect, abilityOffset);
  const outcome = isCorrect ? 0.5 : -0.5;
  const right = isCorrect ? 1 : 0;
  const seconds = wholeSeconds(occurredAt);
  return {
    learner: {
      ability,
      variance,
      recent: learner.recent + model.recentRate * (outcome - learner.recent),
      slow: learner.slow + model.slowRate * (outcome - learner.slow),
      right: learner.right + right,
      wrong: learner.wrong + 1 - right,
      wrongRun: isCorrect ? 0 : learner.wrongRun + 1,
      lastRightAt: isCorrect ? Math.max(learner.lastRightAt, occurredAt) : learner.lastRightAt,
      course: updateCourse(learner.course, asked, isCorrect, place, item?.wrongRun ?? 0, abilityOffset),
    },
    skill: {
      residual,
      lastPlace: place,
      lastRightPlace: isCorrect ? place : skill.lastRightPlace,
      lastRightAt: isCorrect ? Math.max(skill.lastRightAt, seconds) : skill.lastRightAt,
      streak: isCorrect
        ? Math.min(Math.max(skill.streak, 0) + 1, maxStreak)
        : Math.max(Math.min(skill.streak, 0) - 1, -maxStreak),
    },
    item: item && {
      right: Math.min(maxItemCount, item.right + right),
      wrong: Math.min(maxItemCount, item.wrong + 1 - right),
      wrongRun: isCorrect ? 0 : Math.min(maxItemRun, item.wrongRun + 1),
      lastWrong: ((item.lastWrong << 1) | (1 - right)) & allLast,
      elsewhere: elsewhereAt(place, skillAttempts),
      at: Math.max(item.at, seconds),
    },
  };
}

/** Answers that the learner gave to other skills before this place; never below 0, whatever was lost. */
export const elsewhereAt = (place: number, skillAttempts: number): number =>
  Math.max(0, place - 1 - skillAttempts);

/** An extended Kalman filter of the Rasch model on two levels; both move towards the answer: a right one lowers neither. */
function filterAbility(learner: LearnerTrace, skill: SkillTrace, isCorrect: boolean, abilityOffset: number) {
  const { abilityVariance, abilityNoise, abilityBound, residualVariance, residualBound } = model;
  const expected = sigmoid(learner.ability + skill.residual + abilityOffset);
  const information = expected * (1 - expected);
  const variance = Math.min(learner.variance + abilityNoise, abilityVariance);
  const surprise = ((isCorrect ? 1 : 0) - expected) / (1 + information * (variance + residualVariance));
  return {
    ability: clamp(learner.ability + variance * surprise, -abilityBound, abilityBound),
    variance: variance * (1 - (information * variance) / (1 + information * (variance + residualVariance))),
    residual: clamp(skill.residual + residualVariance * surprise, -residualBound, residualBound),
  };
}

export const wholeSeconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000));

/** Numbers of `itemPattern`, 0 aside. */
export const itemPatterns = 2 * ((2 << lastAnswers) - 2);

/** The last four answers and whether no other skill followed, from 1 to `itemPatterns`; 0: none. */
export function itemPattern({ right, wrong, lastWrong }: ItemTrace, isLatest: boolean): number {
  const known = Math.min(right + wrong, lastAnswers);
  const latest = isLatest ? 1 : 0;
  return known === 0 ? 0 : 2 * ((1 << known) - 2 + (lastWrong & ((1 << known) - 1))) + latest + 1;
}

/** What the number tells but for the order: how many answers, 1 to 4, and how many of them wrong. */
export function itemPatternCounts(pattern: number): { readonly answers: number; readonly wrong: number } {
  // The answers' bits below a leading 1.
  const bits = ((pattern - 1) >> 1) + 2;
  const answers = 31 - Math.clz32(bits);
  return { answers, wrong: bits.toString(2).replaceAll('0', '').length - 1 };
}
