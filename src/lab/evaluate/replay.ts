/** Replays a log with the code that serves answers. */

import { computeConditions } from '../../domain/answer/answer-conditions.js';
import { type AnswerEffect, applyAnswer } from '../../domain/answer/apply-answer.js';
import { type AnswerLog, iterateLearnerRanges, selectAllLearners } from '../../domain/base/answer-log.js';
import type { Answer } from '../../domain/base/common.js';
import { hashKey } from '../../domain/base/text-hash.js';
import { type ItemModel, resolveSkillModel, type TenantModel } from '../../domain/catalogue/tenant-model.js';
import {
  type AnswerStates,
  type ItemRecord,
  type LearnerState,
  newLearner,
  newSkill,
  type SkillState,
} from '../../domain/tracing/learner-states.js';

/** For logs with the skill and item numbers of the training log. */
export interface ServedModel {
  readonly model: TenantModel;
  /** Ids in the model, by skill number. */
  readonly skillIds: readonly string[];
  /**
   * Null for an item without training answers.
   * @param item number, from 1
   */
  itemOf(item: number): ItemModel | null;
}

export const itemKey = (item: number): number => (item === 0 ? 0 : hashKey(String(item)));

interface LearnerHistory {
  learner: LearnerState;
  readonly skills: Map<number, SkillState>;
  readonly items: Map<number, ItemRecord>;
}

export type ReplayMoment = ReturnType<typeof buildMoment>;
export type AskedQuestion = ReturnType<typeof buildQuestion>;

/** @param visit called before the history changes */
export function replayLog(
  served: ServedModel,
  log: AnswerLog,
  visit: (moment: ReplayMoment, effect: AnswerEffect) => void,
): void {
  for (const { start, end } of iterateLearnerRanges(log, selectAllLearners(log))) {
    const history: LearnerHistory = { learner: newLearner, skills: new Map(), items: new Map() };
    for (let place = start; place < end; place++) {
      const moment = buildMoment(served, log, history, place);
      const after = applyAnswer(moment.states, moment.answer, moment.conditions);
      visit(moment, after);
      history.learner = after.learner;
      history.skills.set(moment.skill, after.skills[0]);
      if (after.item) history.items.set(moment.item, after.item);
    }
  }
}

function buildMoment(served: ServedModel, log: AnswerLog, history: LearnerHistory, place: number) {
  const answer: Answer = {
    isCorrect: log.correct[place] === 1,
    occurredAt: log.at[place] as number,
    questionDifficulty: nanToNull(log.difficulty[place] as number),
    timeSpentSeconds: nanToNull(log.seconds[place] as number),
    confidenceScore: null,
  };
  const [skill, item] = [log.skill[place] as number, log.item[place] as number];
  return { history, place, ...buildQuestion(served, history, skill, item, answer) };
}

export function buildQuestion(
  { model, skillIds, itemOf }: ServedModel,
  history: LearnerHistory,
  skill: number,
  item: number,
  answer: Answer,
) {
  const skillId = skillIds[skill] as string;
  const skillState = history.skills.get(skill) ?? newSkill(resolveSkillModel(model, skillId).parameters);
  const statesOn = (item: number): AnswerStates => ({
    keys: { skill: hashKey(skillId), item: itemKey(item) },
    learner: history.learner,
    skills: [skillState],
    item: item === 0 ? null : history.items.get(item),
  });
  const conditionsOn = (item: number, states: AnswerStates) =>
    computeConditions(model, [skillId], item === 0 ? null : itemOf(item), states, answer);
  const states = statesOn(item);
  const conditions = conditionsOn(item, states);
  return { skill, item, answer, states, conditions, statesOn, conditionsOn };
}

const nanToNull = (value: number): number | null => (Number.isNaN(value) ? null : value);
