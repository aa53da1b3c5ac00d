import { newAbility, updateAbility } from './ability.js';
import { type BktStep, traceAnswer } from './bkt.js';
import { type BktParameters, masteredAt } from './params.js';
import type { Answer, LearnerState, SkillState } from './types.js';

const dayMs = 86_400_000;

export const newLearner: LearnerState = {
  version: 0,
  attempts: 0,
  math: newAbility,
  rw: newAbility,
  baselineTotal: null,
};

export const newSkill = (parameters: BktParameters): SkillState => ({
  mastery: parameters.pInit,
  attempts: 0,
  correct: 0,
  lastAttemptAt: 0,
  correctDays: 0,
  lastCorrectDay: -1,
});

/** The states after one answer, and the step that led there. */
export interface AnswerEffect {
  readonly learner: LearnerState;
  readonly skill: SkillState;
  readonly step: BktStep;
}

/**
 * Applies one answer to a learner's states. Pure: time comes with the answer, and the same answers in the same
 * order give the same states bit for bit, which is what a rebuild rests on.
 *
 * A late answer counts on arrival: the skill's clock never runs backwards.
 */
export function applyAnswer(
  learner: LearnerState,
  skill: SkillState,
  answer: Answer,
  parameters: BktParameters,
): AnswerEffect {
  const step = traceAnswer(parameters, skill.mastery, answer.isCorrect);
  return { learner: countAnswer(learner, answer), skill: traceSkill(skill, answer, step), step };
}

function traceSkill(skill: SkillState, answer: Answer, step: BktStep): SkillState {
  const day = Math.floor(answer.occurredAt / dayMs);
  const newDay = answer.isCorrect && day > skill.lastCorrectDay;
  return {
    mastery: step.masteryAfter,
    attempts: skill.attempts + 1,
    correct: skill.correct + (answer.isCorrect ? 1 : 0),
    lastAttemptAt: Math.max(skill.lastAttemptAt, answer.occurredAt),
    correctDays: skill.correctDays + (newDay ? 1 : 0),
    lastCorrectDay: newDay ? day : skill.lastCorrectDay,
  };
}

/** A skill that has no section counts half in each. */
const unmappedShare = 0.5;

function countAnswer(learner: LearnerState, answer: Answer): LearnerState {
  const difficulty = answer.questionDifficulty ?? 0;
  return {
    ...learner,
    attempts: learner.attempts + 1,
    math: updateAbility(learner.math, answer.isCorrect, unmappedShare, difficulty),
    rw: updateAbility(learner.rw, answer.isCorrect, unmappedShare, difficulty),
  };
}

/** Whether the skill may be called mastered: one crossing of the threshold is weak evidence. */
export function isMastered(skill: SkillState, mastery: number): boolean {
  return mastery >= masteredAt.mastery && skill.attempts >= masteredAt.attempts;
}
