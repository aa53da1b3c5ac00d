/** Replays a log with the code that serves answers. */

import { computeConditions } from '../../domain/answer/answer-conditions.js';
import { type AnswerEffect, applyAnswer } from '../../domain/answer/apply-answer.js';
import { type AnswerLog, iterateLearnerRanges, selectAllLearners } from '../../domain/base/answer-log.js';
import { type Answer, mapNonEmpty, type NonEmpty } from '../../domain/base/common.js';
import { hashKey } from '../../domain/base/text-hash.js';
import { type ItemModel, resolveSkillModel, type TenantModel } from '../../domain/catalogue/tenant-model.js';
import { combineIds } from '../../domain/tracing/course.js';
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
  /** Ids in the model, by the log's skill set. */
  readonly sets: readonly NonEmpty<string>[];
  /**
   * Null for an item without training answers.
   * @param item number, from 1
   */
  itemOf(item: number): ItemModel | null;
}

export const itemKey = (item: number): number => (item === 0 ? 0 : hashKey(String(item)));

interface LearnerHistory {
  learner: LearnerState;
  readonly skills: Map<string, SkillState>;
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
      for (const [i, skill] of after.skills.entries())
        history.skills.set(moment.skillIds[i] as string, skill);
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
  const [set, item] = [log.skill[place] as number, log.item[place] as number];
  return { history, place, ...buildQuestion(served, history, set, item, answer) };
}

export function buildQuestion(
  { model, sets, itemOf }: ServedModel,
  history: LearnerHistory,
  set: number,
  item: number,
  answer: Answer,
) {
  const skillIds = sets[set] as NonEmpty<string>;
  const skills = mapNonEmpty(
    skillIds,
    (skillId) => history.skills.get(skillId) ?? newSkill(resolveSkillModel(model, skillId).parameters),
  );
  const statesOn = (item: number): AnswerStates => ({
    keys: { skill: hashKey(combineIds(skillIds)), item: itemKey(item) },
    learner: history.learner,
    skills,
    item: item === 0 ? null : history.items.get(item),
  });
  const conditionsOn = (item: number, states: AnswerStates) =>
    computeConditions(model, skillIds, item === 0 ? null : itemOf(item), states, answer);
  const states = statesOn(item);
  const conditions = conditionsOn(item, states);
  return { set, skillIds, item, answer, states, conditions, statesOn, conditionsOn };
}

const nanToNull = (value: number): number | null => (Number.isNaN(value) ? null : value);
