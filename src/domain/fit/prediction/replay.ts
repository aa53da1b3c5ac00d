import { type AnswerLog, everyone, type Learners, placesOf, shared } from '../../base/answer-log.js';
import { dayOf, sigmoid } from '../../base/common.js';
import { answerLoss } from '../../base/metrics.js';
import { predictionModel } from '../../base/prediction-constants.js';
import type { ItemModel } from '../../catalogue/tenant-model.js';
import { rowWidth, writeFeatures } from '../../prediction/features.js';
import {
  itemDifficulty,
  itemTermCount,
  logOddsWithoutItem,
  type PredictionModel,
  skillTermCount,
} from '../../prediction/model.js';
import { type Related, unrelated } from '../../prediction/related.js';
import { newItemWindow, openWindow, type RememberedItem, recallItem } from '../../tracing/states.js';
import {
  type ItemTrace,
  newItemTrace,
  newLearnerTrace,
  newSkillTrace,
  updateTraces,
} from '../../tracing/traces.js';
import { difficultyAt, shiftAt, type TracedModel, traceLog } from '../bkt/trace.js';
import type { FittedPrediction } from './fitted.js';
import { type AbilityOffsets, abilityOffset } from './offsets.js';
import { type PairTable, relatedAt, relatedByKeys } from './pair-tables.js';

/** By answer index, in shared memory. */
export const newFeatureStore = ({ skill }: AnswerLog) => ({
  rows: shared.floats(rowWidth * skill.length),
  /** 1 for the first answers to an item, then for one per day. */
  countsForItem: shared.bytes(skill.length),
  /** Log-odds without the item's term. */
  logits: shared.floats(skill.length),
});

export type FeatureStore = ReturnType<typeof newFeatureStore>;

const newSkillHistory = { trace: newSkillTrace, attempts: 0, right: 0 };

const newHistory = () => ({
  learner: newLearnerTrace,
  skills: new Map<number, typeof newSkillHistory>(),
  items: new Map<number, RememberedItem>(),
  window: newItemWindow,
});

export function replayLearners(
  log: AnswerLog,
  from: number,
  to: number,
  model: TracedModel,
  offsets: AbilityOffsets,
  store: FeatureStore,
): void {
  let history = newHistory();
  const replay = (place: number, pCorrect: number, learner: number): void => {
    const nth = place - (log.starts[learner] as number) + 1;
    if (nth === 1) history = newHistory();
    const skill = log.skill[place] as number;
    const item = log.item[place] as number;
    const answer = { isCorrect: log.correct[place] === 1, occurredAt: log.at[place] as number };
    const { trace, attempts, right } = history.skills.get(skill) ?? newSkillHistory;
    const remembered = item === 0 ? undefined : history.items.get(item);
    const recalled = recallItem(history.window, remembered);
    const traces = {
      learner: history.learner,
      skill: trace,
      item: item === 0 ? null : (recalled ?? newItemTrace),
    };
    // Log numbers replace hashed keys.
    const asked = { skill: skill + 1, item };
    writeFeatures(store.rows, place * rowWidth, {
      traces,
      asked,
      bktProbability: Math.fround(pCorrect),
      skillAttempts: attempts,
      skillRight: right,
      place: nth,
      at: answer.occurredAt,
      difficulty: difficultyAt(log, place, model),
      // The bias corrects fitted terms, so the fit excludes it.
      bias: 0,
    });
    store.countsForItem[place] = item !== 0 && countsForItem(recalled, answer.occurredAt) ? 1 : 0;
    const offset = abilityOffset(offsets, skill, item, Math.fround(shiftAt(log, place, model)));
    const after = updateTraces(traces, asked, answer, nth, attempts, offset);
    history.learner = after.learner;
    const rightNow = right + (answer.isCorrect ? 1 : 0);
    history.skills.set(skill, { trace: after.skill, attempts: attempts + 1, right: rightNow });
    if (after.item === null) return;
    history.window = openWindow(history.window, remembered);
    history.items.set(item, { generation: history.window.generation, trace: after.item });
  };
  traceLog(log, everyone(log), model, replay, from, to);
}

/** Live counters use one answer a day. A fit needs more answers per item. */
const countsForItem = (recalled: ItemTrace | null, occurredAt: number): boolean =>
  recalled === null ||
  recalled.right + recalled.wrong < predictionModel.fit.itemAnswersEach ||
  dayOf(recalled.at * 1000) < dayOf(occurredAt);

/** Needs the rows of `replayLearners`. */
export function predictRange(
  log: AnswerLog,
  from: number,
  to: number,
  prediction: FittedPrediction,
  { rows, logits }: FeatureStore,
): void {
  const end = log.starts[to] as number;
  const related = relatedSkills(log, prediction);
  for (let place = log.starts[from] as number; place < end; place++) {
    const terms = termsFor(log, place, prediction, related);
    logits[place] = logOddsWithoutItem(prediction.model, terms, rows, place * rowWidth);
  }
}

export const relatedSkills = ({ skills }: AnswerLog, { pairs }: FittedPrediction): Related[] =>
  Array.from({ length: skills }, (_, skill) => relatedAt(pairs, skill));

export function termsFor(
  log: AnswerLog,
  place: number,
  { skillTerms, itemTerms, itemPairs }: FittedPrediction,
  related: readonly Related[],
) {
  const item = log.item[place] as number;
  const skill = log.skill[place] as number;
  return {
    skill: termsAt(skillTerms, skill, skillTermCount),
    item: item === 0 ? null : termsAt(itemTerms, item, itemTermCount),
    related: related[skill] as Related,
    itemsBefore: item === 0 ? unrelated : relatedAt(itemPairs, item),
  };
}

const termsAt = (terms: Float32Array, index: number, count: number): Float32Array =>
  terms.subarray(index * count, (index + 1) * count);

export interface ItemFigures {
  readonly terms: Float32Array;
  readonly offsets: Float32Array;
  readonly pairs: PairTable;
}

export type FittedItems = ItemFigures & { readonly sums: ReturnType<typeof countItems> };

export const itemModelAt = (
  { terms, offsets, pairs, sums }: FittedItems,
  item: number,
  keyOf: (item: number) => number,
): ItemModel => ({
  ...countsAt(sums, item),
  terms: [...termsAt(terms, item, itemTermCount)],
  before: relatedByKeys(relatedAt(pairs, item), 1, keyOf),
  abilityOffset: offsets[item] ?? 0,
});

const countsAt = ({ answers, right, expected }: FittedItems['sums'], item: number) => ({
  answers: answers[item] ?? 0,
  right: right[item] ?? 0,
  expected: expected[item] ?? 0,
});

/** Needs the log-odds of `predictRange`. */
export function countItems(log: AnswerLog, learners: Learners, { countsForItem, logits }: FeatureStore) {
  const answers = shared.counts(log.items + 1);
  const right = shared.counts(log.items + 1);
  const expected = shared.doubles(log.items + 1);
  for (const place of placesOf(log, learners)) {
    if (countsForItem[place] === 0) continue;
    const item = log.item[place] as number;
    answers[item] = (answers[item] as number) + 1;
    right[item] = (right[item] as number) + (log.correct[place] as number);
    expected[item] = (expected[item] as number) + sigmoid(logits[place] as number);
  }
  return { answers, right, expected };
}

/** Uses item counters of the training learners only; null without answers. */
export function judgeServed(
  log: AnswerLog,
  training: Learners,
  heldOut: Learners,
  store: FeatureStore,
  model: Pick<PredictionModel, 'itemPriorAnswers' | 'itemScale'>,
): number | null {
  const sums = countItems(log, training, store);
  const difficulty = Float64Array.from(sums.answers, (_, item) =>
    itemDifficulty(countsAt(sums, item), model),
  );
  const places = placesOf(log, heldOut);
  let loss = 0;
  for (const place of places) {
    const own = difficulty[log.item[place] as number] as number;
    loss += answerLoss(sigmoid((store.logits[place] as number) + own), log.correct[place] as number);
  }
  return places.length === 0 ? null : loss / places.length;
}
