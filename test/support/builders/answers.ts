import { computeConditions } from '../../../src/domain/answer/answer-conditions.js';
import { applyAnswer } from '../../../src/domain/answer/apply-answer.js';
import { type Answer, mapNonEmpty, type NonEmpty } from '../../../src/domain/base/common.js';
import {
  type ItemModel,
  resolveSkillModel,
  type TenantModel,
  unfittedModel,
} from '../../../src/domain/catalogue/tenant-model.js';
import { hashQuestionKeys } from '../../../src/domain/tracing/course.js';
import {
  type AnswerStates,
  type ItemRecord,
  newLearner,
  newSkill,
  type SkillState,
} from '../../../src/domain/tracing/learner-states.js';

export const anAnswer: Answer = {
  ...{ isCorrect: true, occurredAt: 1_700_000_000_000 },
  ...{ questionDifficulty: null, timeSpentSeconds: null, confidenceScore: null },
};

/** One skill, or all skills of a question. */
type Skills = string | NonEmpty<string>;

const toList = (skills: Skills): NonEmpty<string> => (typeof skills === 'string' ? [skills] : skills);

/** A new learner whose answers are applied as the workers apply them. */
export function createLearner(model: TenantModel = unfittedModel, items = new Map<string, ItemModel>()) {
  let learner = newLearner;
  const skills = new Map<string, SkillState>();
  const records = new Map<string, ItemRecord>();
  const stateOf = (skillId: string): SkillState =>
    skills.get(skillId) ?? newSkill(resolveSkillModel(model, skillId).parameters);
  const statesOf = (asked: Skills, itemId: string | null): AnswerStates => ({
    keys: hashQuestionKeys(toList(asked), itemId),
    learner,
    skills: mapNonEmpty(toList(asked), stateOf),
    item: itemId === null ? null : records.get(itemId),
  });
  const conditionsOf = (asked: Skills, itemId: string | null, answer: Answer) => {
    const item = itemId === null ? null : (items.get(itemId) ?? null);
    return computeConditions(model, toList(asked), item, statesOf(asked, itemId), answer);
  };
  return {
    state: () => learner,
    skills,
    statesOf,
    predict: (asked: Skills, itemId: string | null, occurredAt: number): number =>
      conditionsOf(asked, itemId, { ...anAnswer, occurredAt }).pCorrect,
    /** Missing fields have the values of `anAnswer`. */
    answer(asked: Skills, itemId: string | null, part: Partial<Answer>): void {
      const answer = { ...anAnswer, ...part };
      const conditions = conditionsOf(asked, itemId, answer);
      const after = applyAnswer(statesOf(asked, itemId), answer, conditions);
      learner = after.learner;
      for (const [i, skillId] of toList(asked).entries()) skills.set(skillId, after.skills[i] as SkillState);
      if (itemId !== null && after.item) records.set(itemId, after.item);
    },
  };
}

/** @returns a new learner's states after answers on one skill */
export function countAnswers(answers: readonly Partial<Answer>[], model = unfittedModel): AnswerStates {
  const learner = createLearner(model);
  for (const answer of answers) learner.answer('algebra', null, answer);
  return learner.statesOf('algebra', null);
}
