/** Inputs of the predicted probability, updated in constant time. */

import { type Answer, average, clamp, mapNonEmpty, type NonEmpty, sigmoid } from '../base/common.js';
import { predictionConstants as model } from '../base/prediction-constants.js';
import { newCourse, type QuestionKeys, updateCourse } from './course.js';

export const newLearnerTrace = {
  /** Logits above a new learner. */
  ability: 0,
  variance: model.abilityVariance as number,
  /** Moving averages, -.5 to .5. */
  recent: 0,
  slow: 0,
  right: 0,
  wrong: 0,
  wrongRun: 0,
  /** Unix milliseconds; 0: never. */
  lastRightAt: 0,
  course: newCourse,
};

export type LearnerTrace = Readonly<typeof newLearnerTrace>;

/** Answer numbers count from 1; 0: never. */
export const newSkillTrace = {
  /** Logits above the ability. */
  residual: 0,
  lastAnswerNumber: 0,
  lastRightNumber: 0,
  /** Unix seconds. */
  lastRightAt: 0,
  /** Number of correct answers in a row, or minus the wrong ones. */
  streak: 0,
};

export type SkillTrace = Readonly<typeof newSkillTrace>;

export const newItemTrace = {
  right: 0,
  wrong: 0,
  wrongRun: 0,
  /** Last four answers, newest in the lowest bit. */
  wrongBits: 0,
  /** Answers on other skills before the last answer to the item. */
  otherSkillAnswers: 0,
  /** Time of the last answer, Unix seconds. */
  at: 0,
};

export type ItemTrace = Readonly<typeof newItemTrace>;

export interface Traces {
  readonly learner: LearnerTrace;
  /** Of the question. */
  readonly skills: NonEmpty<SkillTrace>;
  /** Null if the answer has no item. */
  readonly item: ItemTrace | null;
}

export type TracedAnswer = Pick<Answer, 'isCorrect' | 'occurredAt'>;

const maxItemCount = 255;
export const maxItemRun = 8;
export const maxStreak = 5;
const patternAnswers = 4;
const patternMask = (1 << patternAnswers) - 1;

/**
 * @param skillAttempts earlier answers on the question's skills (`combineSkills`) @param abilityOffset log-odds of a new
 * learner
 */
export function updateTraces(
  { learner, skills, item }: Traces,
  keys: QuestionKeys,
  { isCorrect, occurredAt }: TracedAnswer,
  answerNumber: number,
  skillAttempts: number,
  abilityOffset: number,
): Traces {
  const { ability, variance, residualStep } = filterAbility(learner, skills, isCorrect, abilityOffset);
  const outcome = isCorrect ? 0.5 : -0.5;
  const right = isCorrect ? 1 : 0;
  const seconds = toUnixSeconds(occurredAt);
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
      course: updateCourse(learner.course, keys, isCorrect, answerNumber, item?.wrongRun ?? 0, abilityOffset),
    },
    skills: mapNonEmpty(skills, (skill) => ({
      residual: clamp(skill.residual + residualStep, -model.residualBound, model.residualBound),
      lastAnswerNumber: answerNumber,
      lastRightNumber: isCorrect ? answerNumber : skill.lastRightNumber,
      lastRightAt: isCorrect ? Math.max(skill.lastRightAt, seconds) : skill.lastRightAt,
      streak: isCorrect
        ? Math.min(Math.max(skill.streak, 0) + 1, maxStreak)
        : Math.max(Math.min(skill.streak, 0) - 1, -maxStreak),
    })),
    item: item && {
      right: Math.min(maxItemCount, item.right + right),
      wrong: Math.min(maxItemCount, item.wrong + 1 - right),
      wrongRun: isCorrect ? 0 : Math.min(maxItemRun, item.wrongRun + 1),
      wrongBits: ((item.wrongBits << 1) | (1 - right)) & patternMask,
      otherSkillAnswers: countOtherAnswers(answerNumber, skillAttempts),
      at: Math.max(item.at, seconds),
    },
  };
}

/** Earlier answers on other skills; 0 after data loss. */
export const countOtherAnswers = (answerNumber: number, skillAttempts: number): number =>
  Math.max(0, answerNumber - 1 - skillAttempts);

/** Extended Kalman filter of a Rasch model. A correct answer cannot lower a level. */
function filterAbility(
  learner: LearnerTrace,
  skills: NonEmpty<SkillTrace>,
  isCorrect: boolean,
  abilityOffset: number,
) {
  const { abilityVariance, abilityNoise, abilityBound, residualVariance } = model;
  const expected = sigmoid(learner.ability + averageResidual(skills) + abilityOffset);
  const information = expected * (1 - expected);
  const variance = Math.min(learner.variance + abilityNoise, abilityVariance);
  const surprise = ((isCorrect ? 1 : 0) - expected) / (1 + information * (variance + residualVariance));
  return {
    ability: clamp(learner.ability + variance * surprise, -abilityBound, abilityBound),
    variance: variance * (1 - (information * variance) / (1 + information * (variance + residualVariance))),
    residualStep: residualVariance * surprise,
  };
}

const averageResidual = (skills: readonly SkillTrace[]): number =>
  average(skills, ({ residual }) => residual);

/** A learner's earlier answers on a skill. */
export interface SkillRecord {
  readonly attempts: number;
  readonly correct: number;
  readonly trace: SkillTrace;
}

export const newSkillRecord: SkillRecord = { trace: newSkillTrace, attempts: 0, correct: 0 };

/**
 * Record of a question's skills, as if they were one skill: the least counts, the earliest last correct answer, the mean
 * streak. The last answer was correct if it was for each skill.
 */
export function combineSkills(skills: NonEmpty<SkillRecord>): SkillRecord {
  if (skills.length === 1) return skills[0];
  const traces = skills.map(({ trace }) => trace);
  const least = (figure: (skill: SkillRecord) => number): number => Math.min(...skills.map(figure));
  const lastRightNumber = least(({ trace }) => trace.lastRightNumber);
  const isRight = traces.every((trace) => trace.lastRightNumber === trace.lastAnswerNumber);
  return {
    attempts: least(({ attempts }) => attempts),
    correct: least(({ correct }) => correct),
    trace: {
      residual: averageResidual(traces),
      lastAnswerNumber: isRight
        ? lastRightNumber
        : Math.max(...traces.map((trace) => trace.lastAnswerNumber)),
      lastRightNumber,
      lastRightAt: least(({ trace }) => trace.lastRightAt),
      streak: Math.trunc(average(traces, ({ streak }) => streak)),
    },
  };
}

export const toUnixSeconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000));

export const itemPatternCount = 2 * ((2 << patternAnswers) - 2);

/** Encodes the last four answers, and whether no other skill followed. */
export function encodeItemPattern({ right, wrong, wrongBits }: ItemTrace, isSkillUnchanged: boolean): number {
  const seen = Math.min(right + wrong, patternAnswers);
  const latest = isSkillUnchanged ? 1 : 0;
  return seen === 0 ? 0 : 2 * ((1 << seen) - 2 + (wrongBits & ((1 << seen) - 1))) + latest + 1;
}

export function decodeItemPattern(pattern: number): { readonly answers: number; readonly wrong: number } {
  // The answers are the bits below a leading 1.
  const bits = ((pattern - 1) >> 1) + 2;
  const answers = 31 - Math.clz32(bits);
  return { answers, wrong: bits.toString(2).replaceAll('0', '').length - 1 };
}
