/** The served model over a log: each learner is counted answer by answer by the very code that serves. */

import { applyAnswer } from '../../domain/answer/apply-answer.js';
import { conditionsFor } from '../../domain/answer/conditions.js';
import { type AnswerLog, everyone, placesByLearner } from '../../domain/base/answer-log.js';
import type { Answer } from '../../domain/base/common.js';
import { type ItemModel, skillModelOf, type TenantModel } from '../../domain/catalogue/tenant-model.js';
import {
  type AnswerStates,
  type LearnerState,
  newLearner,
  newSkill,
  type RememberedItem,
  recallItem,
  type SkillState,
} from '../../domain/tracing/states.js';
import type { ItemTrace } from '../../domain/tracing/traces.js';

/** A fitted model for logs whose skills and items have the same numbers as in the one that it was fitted on. */
export interface ServedModel {
  readonly model: TenantModel;
  /** Names of the skills in the model, by their number. */
  readonly skillIds: readonly string[];
  /** What is known of an item by its number, from 1; null for one that no training learner answered. */
  itemOf(item: number): ItemModel | null;
}

/**
 * For another item of the same skill, a right answer must not lower the probability, nor a wrong one raise it. An item that
 * drops out of the learner's window with the answer is not probed: it becomes unknown after either outcome.
 */
export interface MonotoneCheck {
  /** Answers after which both outcomes were tried. */
  probes: number;
  rightLowers: number;
  wrongRaises: number;
}

/** One learner's states. */
interface History {
  learner: LearnerState;
  readonly skills: Map<number, SkillState>;
  readonly items: Map<number, RememberedItem<ItemTrace>>;
}

/** Answers to probe, evenly spread over the log. */
const wantedProbes = 50_000;

export function predictServed(served: ServedModel, log: AnswerLog) {
  /** Probability of a right answer before the answer, by its index in the log. */
  const predictions = new Float64Array(log.correct.length);
  const every = Math.ceil(predictions.length / wantedProbes);
  const monotone: MonotoneCheck = { probes: 0, rightLowers: 0, wrongRaises: 0 };
  const others = new Map<number, number>();
  replayServed(served, log, (history, place, pCorrect) => {
    if (place % every === 0) probe(served, history, log, place, others, monotone);
    predictions[place] = pCorrect;
  });
  return { predictions, monotone };
}

/**
 * Counts a log's answers as they would have been served.
 *
 * @param before called for every answer in its order, with its learner's states before it and the probability served then
 */
export function replayServed(
  served: ServedModel,
  log: AnswerLog,
  before: (history: History, place: number, pCorrect: number) => void,
): void {
  for (const { start, end } of placesByLearner(log, everyone(log))) {
    const history: History = { learner: newLearner, skills: new Map(), items: new Map() };
    for (let place = start; place < end; place++) {
      const [skill, item] = [log.skill[place] as number, log.item[place] as number];
      const states = statesOf(served, history, skill, item);
      const answer = answerOf(log, place);
      const conditions = conditionsOf(served, states, skill, item, answer);
      before(history, place, conditions.pCorrect);
      const after = applyAnswer(states, answer, conditions);
      history.learner = after.learner;
      history.skills.set(skill, after.skill);
      if (after.item) history.items.set(item, after.item);
    }
  }
}

function statesOf(served: ServedModel, history: History, skill: number, item: number): AnswerStates {
  const { parameters } = skillModelOf(served.model, served.skillIds[skill] as string);
  return {
    learner: history.learner,
    skill: history.skills.get(skill) ?? newSkill(parameters),
    item: item === 0 ? null : history.items.get(item),
  };
}

const conditionsOf = (
  { model, skillIds, itemOf }: ServedModel,
  states: AnswerStates,
  skill: number,
  item: number,
  answer: Answer,
) => conditionsFor(model, skillIds[skill] as string, item === 0 ? null : itemOf(item), states, answer);

const numberOrNull = (value: number): number | null => (Number.isNaN(value) ? null : value);

const answerOf = (log: AnswerLog, place: number): Answer => ({
  isCorrect: log.correct[place] === 1,
  occurredAt: log.at[place] as number,
  questionDifficulty: numberOrNull(log.difficulty[place] as number),
  timeSpentSeconds: numberOrNull(log.seconds[place] as number),
  confidenceScore: null,
});

/**
 * Tries both outcomes of an answer and compares the probability for another item of the skill: the item that any learner
 * answered before it, so that items known and unknown to the learner occur. Does nothing where there was no other.
 *
 * @param others that item by skill, kept here
 */
function probe(
  served: ServedModel,
  history: History,
  log: AnswerLog,
  place: number,
  others: Map<number, number>,
  found: MonotoneCheck,
): void {
  const [skill, item] = [log.skill[place] as number, log.item[place] as number];
  const other = others.get(skill) ?? 0;
  others.set(skill, item);
  if (other === item && item !== 0) return;
  const answer = answerOf(log, place);
  const before = statesOf(served, history, skill, item);
  const conditions = conditionsOf(served, before, skill, item, answer);
  const elsewhere = statesOf(served, history, skill, other);
  const chance = (states: AnswerStates): number =>
    conditionsOf(served, states, skill, other, answer).pCorrect;
  const after = (isCorrect: boolean): AnswerStates => ({
    ...applyAnswer(before, { ...answer, isCorrect }, conditions),
    item: elsewhere.item,
  });
  const [right, wrong] = [after(true), after(false)];
  if (isKnown(elsewhere) && !isKnown(right)) return;
  const now = chance(elsewhere);
  found.probes++;
  if (chance(right) < now - rounding) found.rightLowers++;
  if (chance(wrong) > now + rounding) found.wrongRaises++;
}

const isKnown = ({ learner, item }: AnswerStates): boolean =>
  item !== null && recallItem(learner.items, item) !== null;

/** Differences below come from the last bits of sums. */
const rounding = 1e-12;
