/** Replays a log with the code that serves answers. */
import { type AnswerEffect, applyAnswer } from '../../domain/answer/apply-answer.js';
import { conditionsFor } from '../../domain/answer/conditions.js';
import { type AnswerLog, everyone, placesByLearner } from '../../domain/base/answer-log.js';
import type { Answer } from '../../domain/base/common.js';
import { keyOf } from '../../domain/base/text-hash.js';
import { type ItemModel, skillModelOf, type TenantModel } from '../../domain/catalogue/tenant-model.js';
import {
  type AnswerStates,
  type LearnerState,
  newLearner,
  newSkill,
  type RememberedItem,
  type SkillState,
} from '../../domain/tracing/states.js';

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

export const itemKey = (item: number): number => (item === 0 ? 0 : keyOf(String(item)));

interface History {
  learner: LearnerState;
  readonly skills: Map<number, SkillState>;
  readonly items: Map<number, RememberedItem>;
}

export type Moment = ReturnType<typeof momentAt>;
export type Asked = ReturnType<typeof askedAt>;

/** @param visit called before the history changes */
export function replayServed(
  served: ServedModel,
  log: AnswerLog,
  visit: (moment: Moment, effect: AnswerEffect) => void,
): void {
  for (const { start, end } of placesByLearner(log, everyone(log))) {
    const history: History = { learner: newLearner, skills: new Map(), items: new Map() };
    for (let place = start; place < end; place++) {
      const moment = momentAt(served, log, history, place);
      const after = applyAnswer(moment.states, moment.answer, moment.conditions);
      visit(moment, after);
      history.learner = after.learner;
      history.skills.set(moment.skill, after.skill);
      if (after.item) history.items.set(moment.item, after.item);
    }
  }
}

function momentAt(served: ServedModel, log: AnswerLog, history: History, place: number) {
  const answer: Answer = {
    isCorrect: log.correct[place] === 1,
    occurredAt: log.at[place] as number,
    questionDifficulty: numberOrNull(log.difficulty[place] as number),
    timeSpentSeconds: numberOrNull(log.seconds[place] as number),
    confidenceScore: null,
  };
  const [skill, item] = [log.skill[place] as number, log.item[place] as number];
  return { history, place, ...askedAt(served, history, skill, item, answer) };
}

export function askedAt(
  { model, skillIds, itemOf }: ServedModel,
  history: History,
  skill: number,
  item: number,
  answer: Answer,
) {
  const skillId = skillIds[skill] as string;
  const skillState = history.skills.get(skill) ?? newSkill(skillModelOf(model, skillId).parameters);
  const statesOn = (item: number): AnswerStates => ({
    asked: { skill: keyOf(skillId), item: itemKey(item) },
    learner: history.learner,
    skill: skillState,
    item: item === 0 ? null : history.items.get(item),
  });
  const conditionsOn = (item: number, states: AnswerStates) =>
    conditionsFor(model, skillId, item === 0 ? null : itemOf(item), states, answer);
  const states = statesOn(item);
  const conditions = conditionsOn(item, states);
  return { skill, item, answer, states, conditions, statesOn, conditionsOn };
}

const numberOrNull = (value: number): number | null => (Number.isNaN(value) ? null : value);
