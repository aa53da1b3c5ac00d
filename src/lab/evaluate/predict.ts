/** Predictions of all models for the test learners, from the training log and earlier answers only. */
import { applyAnswer } from '../../domain/answer/apply-answer.js';
import { conditionsFor } from '../../domain/answer/conditions.js';
import { type AnswerLog, everyone, placesByLearner } from '../../domain/base/answer-log.js';
import type { Answer } from '../../domain/base/common.js';
import type { BktParameters } from '../../domain/base/params.js';
import { keyOf } from '../../domain/base/text-hash.js';
import { type ItemModel, skillModelOf, type TenantModel } from '../../domain/catalogue/tenant-model.js';
import { traceAnswer } from '../../domain/tracing/bkt.js';
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
import type { Split } from './answers.js';

/** A fitted model for logs whose skills and items have the same numbers as in the one that it was fitted on. */
export interface ServedModel {
  readonly model: TenantModel;
  /** Names of the skills in the model, by their number. */
  readonly skillIds: readonly string[];
  /** What is known of an item by its number, from 1; null for one that no training learner answered. */
  itemOf(item: number): ItemModel | null;
}

/** Probability of a right answer for every answer of the test log, by model. */
export type Predictions = ReturnType<typeof predictAll>['predictions'];
export type MonotoneCheck = ReturnType<typeof predictServed>['monotone'];

/** Every answer of the test log from the models and the learner's answers before it. @param bkt parameters by skill */
export function predictAll(
  { training, test }: Split,
  { bkt, served }: { readonly bkt: readonly BktParameters[]; readonly served: ServedModel },
) {
  const { predictions, monotone } = predictServed(served, test);
  const overall = shareRight(training);
  return {
    predictions: {
      overall_mean: new Float64Array(test.correct.length).fill(overall),
      skill_mean: predictSkillMean(training, test, overall),
      bkt: predictBkt(test, bkt),
      served: predictions,
    },
    monotone,
  };
}

export const shareRight = ({ correct }: AnswerLog): number =>
  correct.reduce((sum, value) => sum + value, 0) / correct.length;

/** Sums by key. @param keys from 0 to below `size` @param values of each; without them keys are counted */
export function sumBy(keys: Uint32Array, size: number, values?: ArrayLike<number>): Float64Array {
  const sums = new Float64Array(size);
  for (const [i, key] of keys.entries())
    sums[key] = (sums[key] as number) + (values === undefined ? 1 : (values[i] as number));
  return sums;
}

/** The share of right answers on the skill; the overall share for a skill that training did not see. */
function predictSkillMean(training: AnswerLog, test: AnswerLog, overall: number): Float64Array {
  const answers = sumBy(training.skill, training.skills);
  const right = sumBy(training.skill, training.skills, training.correct);
  return Float64Array.from(test.skill, (skill) =>
    answers[skill] === 0 ? overall : (right[skill] as number) / (answers[skill] as number),
  );
}

/** Plain Bayesian Knowledge Tracing, skill by skill: without difficulty, forgetting or anything of other skills. */
function predictBkt(test: AnswerLog, parameters: readonly BktParameters[]): Float64Array {
  const predictions = new Float64Array(test.correct.length);
  for (const { start, end } of placesByLearner(test, everyone(test))) {
    const mastery = parameters.map(({ pInit }) => pInit);
    for (let i = start; i < end; i++) {
      const skill = test.skill[i] as number;
      const own = parameters[skill] as BktParameters;
      const step = traceAnswer(own, mastery[skill] as number, test.correct[i] === 1);
      predictions[i] = step.pCorrect;
      mastery[skill] = step.masteryAfter;
    }
  }
  return predictions;
}

// ---- the served model: each learner is counted answer by answer by the very code that serves

/** An item's key is that of its number in the file. */
export const itemKey = (item: number): number => (item === 0 ? 0 : keyOf(String(item)));

interface History {
  learner: LearnerState;
  readonly skills: Map<number, SkillState>;
  readonly items: Map<number, RememberedItem<ItemTrace>>;
}

type Moment = ReturnType<typeof momentAt>;

/** Counts a log's answers as they would have been served. @param before hears of every answer before it is counted */
export function replayServed(served: ServedModel, log: AnswerLog, before: (moment: Moment) => void): void {
  for (const { start, end } of placesByLearner(log, everyone(log))) {
    const history: History = { learner: newLearner, skills: new Map(), items: new Map() };
    for (let place = start; place < end; place++) {
      const moment = momentAt(served, log, history, place);
      before(moment);
      const after = applyAnswer(moment.states, moment.answer, moment.conditions);
      history.learner = after.learner;
      history.skills.set(moment.skill, after.skill);
      if (after.item) history.items.set(moment.item, after.item);
    }
  }
}

/** An answer with the states before it and what is served then, and the same for another item of its skill. */
function momentAt({ model, skillIds, itemOf }: ServedModel, log: AnswerLog, history: History, place: number) {
  const [skill, item] = [log.skill[place] as number, log.item[place] as number];
  const skillId = skillIds[skill] as string;
  const answer: Answer = {
    isCorrect: log.correct[place] === 1,
    occurredAt: log.at[place] as number,
    questionDifficulty: numberOrNull(log.difficulty[place] as number),
    timeSpentSeconds: numberOrNull(log.seconds[place] as number),
    confidenceScore: null,
  };
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
  return { history, place, skill, item, answer, states, conditions, statesOn, conditionsOn };
}

const numberOrNull = (value: number): number | null => (Number.isNaN(value) ? null : value);

/** Answers to probe, evenly spread over the log. */
const wantedProbes = 50_000;
/** Smaller differences come from the last bits of sums. */
const rounding = 1e-12;

/**
 * `predictions` are those before each answer, by its place in the log. `monotone` counts, of the answers after which both
 * outcomes were tried, how often a right one lowered the probability for another item of the skill, or a wrong one raised
 * it: neither should happen.
 */
function predictServed(served: ServedModel, log: AnswerLog) {
  const predictions = new Float64Array(log.correct.length);
  const every = Math.ceil(predictions.length / wantedProbes);
  const monotone = { probes: 0, rightLowers: 0, wrongRaises: 0 };
  /** By skill: the item that any learner answered last, so that items known and unknown to the learner occur. */
  const others = new Map<number, number>();
  replayServed(served, log, (moment) => {
    const { place, skill, item, conditions } = moment;
    predictions[place] = conditions.pCorrect;
    if (place % every !== 0) return;
    const other = others.get(skill) ?? 0;
    others.set(skill, item);
    const chances = other === item && item !== 0 ? null : chancesElsewhere(moment, other);
    if (chances === null) return;
    monotone.probes++;
    if (chances.right < chances.now - rounding) monotone.rightLowers++;
    if (chances.wrong > chances.now + rounding) monotone.wrongRaises++;
  });
  return { predictions, monotone };
}

/**
 * Probability of a right answer on another item of the skill: now, and after either outcome. Null for an item that drops
 * out of the learner's window with the answer: it becomes unknown after either.
 */
function chancesElsewhere({ answer, states, conditions, statesOn, conditionsOn }: Moment, other: number) {
  const now = statesOn(other);
  const after = (isCorrect: boolean): AnswerStates => ({
    ...applyAnswer(states, { ...answer, isCorrect }, conditions),
    asked: now.asked,
    item: now.item,
  });
  const [right, wrong] = [after(true), after(false)];
  if (isKnown(now) && !isKnown(right)) return null;
  const chance = (of: AnswerStates): number => conditionsOn(other, of).pCorrect;
  return { now: chance(now), right: chance(right), wrong: chance(wrong) };
}

const isKnown = ({ learner, item }: AnswerStates): boolean =>
  item !== null && recallItem(learner.items, item) !== null;
