import { computeConditions } from '../../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../../src/domain/answer/apply-answer.js';
import type { Answer } from '../../../src/domain/base/common.js';
import { resolveSkillModel, unfittedModel } from '../../../src/domain/catalogue/tenant-model.js';
import { hashQuestionKeys } from '../../../src/domain/tracing/course.js';
import { type AnswerStates, newLearner, newSkill } from '../../../src/domain/tracing/learner-states.js';

export const anAnswer: Answer = {
  ...{ isCorrect: true, occurredAt: 1_700_000_000_000 },
  ...{ questionDifficulty: null, timeSpentSeconds: null, confidenceScore: null },
};

const skillId = 'algebra';

/** @returns a new learner's states after answers on one skill. Missing fields have the values of `anAnswer`. */
export function countAnswers(answers: readonly Partial<Answer>[], model = unfittedModel): AnswerStates {
  let states: AnswerStates = {
    keys: hashQuestionKeys(skillId, null),
    learner: newLearner,
    skill: newSkill(resolveSkillModel(model, skillId).parameters),
    item: null,
  };
  for (const change of answers) {
    const answer = { ...anAnswer, ...change };
    states = applyAnswer(states, answer, computeConditions(model, skillId, null, states, answer));
  }
  return states;
}
