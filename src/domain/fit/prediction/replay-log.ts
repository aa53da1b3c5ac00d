import {
  type AnswerLog,
  collectAnswerIndices,
  countSkillSets,
  type LearnerSelection,
  listSkillSets,
  selectAllLearners,
  sharedArrays,
} from '../../base/answer-log.js';
import { mapNonEmpty, type NonEmpty, sigmoid, toUtcDay } from '../../base/common.js';
import { predictionConstants } from '../../base/prediction-constants.js';
import { computeAnswerLoss } from '../../base/prediction-metrics.js';
import type { ItemModel } from '../../catalogue/tenant-model.js';
import { rowWidth, writeFeatures } from '../../prediction/features.js';
import {
  computeItemDifficulty,
  itemTermCount,
  logOddsWithoutItem,
  type PredictionModel,
  skillTermCount,
} from '../../prediction/prediction-model.js';
import { emptyRelatedTerms, type RelatedTerms } from '../../prediction/related-terms.js';
import { averageChance } from '../../tracing/bkt.js';
import {
  advanceWindow,
  findLiveTrace,
  type ItemRecord,
  newItemWindow,
} from '../../tracing/learner-states.js';
import {
  combineSkills,
  type ItemTrace,
  newItemTrace,
  newLearnerTrace,
  newSkillRecord,
  type SkillRecord,
  type SkillTrace,
  updateTraces,
} from '../../tracing/traces.js';
import { computeDifficulty, computeShift, type TracedModel, traceLog } from '../bkt/trace-log.js';
import { type AbilityOffsets, computeAbilityOffset } from './ability-offsets.js';
import type { FittedPrediction } from './fitted-prediction.js';
import { mapRelatedKeys, type PairTable, readRelatedTerms } from './pair-tables.js';

/** By answer index, in shared memory. */
export const createFeatureStore = ({ skill }: AnswerLog) => ({
  rows: sharedArrays.floats(rowWidth * skill.length),
  /** 1 for the first answers to an item, then for one per day. */
  countsForItem: sharedArrays.bytes(skill.length),
  /** Log-odds without the item's term. */
  logits: sharedArrays.floats(skill.length),
});

export type FeatureStore = ReturnType<typeof createFeatureStore>;

const createHistory = () => ({
  learner: newLearnerTrace,
  skills: new Map<number, SkillRecord>(),
  items: new Map<number, ItemRecord>(),
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
  const sets = listSkillSets(log);
  let history = createHistory();
  const replay = (index: number, pCorrect: number, learner: number): void => {
    const answerNumber = index - (log.starts[learner] as number) + 1;
    if (answerNumber === 1) history = createHistory();
    const skill = log.skill[index] as number;
    const item = log.item[index] as number;
    const answer = { isCorrect: log.correct[index] === 1, occurredAt: log.at[index] as number };
    const set = sets[skill] as NonEmpty<number>;
    const records = mapNonEmpty(set, (member) => history.skills.get(member) ?? newSkillRecord);
    const combined = combineSkills(records);
    const remembered = item === 0 ? undefined : history.items.get(item);
    const recalled = findLiveTrace(history.window, remembered);
    const traces = {
      learner: history.learner,
      skills: mapNonEmpty(records, ({ trace }) => trace),
      item: item === 0 ? null : (recalled ?? newItemTrace),
    };
    // Log numbers replace hashed keys.
    const keys = { skill: skill + 1, item };
    writeFeatures(store.rows, index * rowWidth, {
      traces,
      skills: combined,
      keys,
      bktProbability: Math.fround(averageChance(pCorrect, set.length)),
      answerNumber,
      occurredAt: answer.occurredAt,
      difficulty: computeDifficulty(log, index, model),
      // The learner's running bias corrects fitted terms, so the fit excludes it.
      bias: 0,
    });
    store.countsForItem[index] = item !== 0 && isItemCounted(recalled, answer.occurredAt) ? 1 : 0;
    const offset = computeAbilityOffset(offsets, skill, item, Math.fround(computeShift(log, index, model)));
    const after = updateTraces(traces, keys, answer, answerNumber, combined.attempts, offset);
    history.learner = after.learner;
    const right = answer.isCorrect ? 1 : 0;
    for (const [i, { attempts, correct }] of records.entries()) {
      const trace = after.skills[i] as SkillTrace;
      history.skills.set(set[i] as number, { trace, attempts: attempts + 1, correct: correct + right });
    }
    if (after.item === null) return;
    history.window = advanceWindow(history.window, remembered);
    history.items.set(item, { generation: history.window.generation, trace: after.item });
  };
  traceLog(log, selectAllLearners(log), model, replay, from, to);
}

/** Live counters use one answer a day. A fit needs more answers per item. */
const isItemCounted = (trace: ItemTrace | null, occurredAt: number): boolean =>
  trace === null ||
  trace.right + trace.wrong < predictionConstants.fit.itemAnswersEach ||
  toUtcDay(trace.at * 1000) < toUtcDay(occurredAt);

/** Needs the rows of `replayLearners`. */
export function predictRange(
  log: AnswerLog,
  from: number,
  to: number,
  prediction: FittedPrediction,
  { rows, logits }: FeatureStore,
): void {
  const end = log.starts[to] as number;
  const related = readRelatedSkills(log, prediction);
  for (let index = log.starts[from] as number; index < end; index++) {
    const terms = readTerms(log, index, prediction, related);
    logits[index] = logOddsWithoutItem(prediction.model, terms, rows, index * rowWidth);
  }
}

export const readRelatedSkills = (log: AnswerLog, { pairs }: FittedPrediction): RelatedTerms[] =>
  Array.from({ length: countSkillSets(log) }, (_, set) => readRelatedTerms(pairs, set));

export function readTerms(
  log: AnswerLog,
  index: number,
  { skillTerms, itemTerms, itemPairs }: FittedPrediction,
  related: readonly RelatedTerms[],
) {
  const item = log.item[index] as number;
  const skill = log.skill[index] as number;
  return {
    skill: sliceTerms(skillTerms, skill, skillTermCount),
    item: item === 0 ? null : sliceTerms(itemTerms, item, itemTermCount),
    related: related[skill] as RelatedTerms,
    itemsBefore: item === 0 ? emptyRelatedTerms : readRelatedTerms(itemPairs, item),
  };
}

const sliceTerms = (terms: Float32Array, index: number, count: number): Float32Array =>
  terms.subarray(index * count, (index + 1) * count);

export interface ItemFigures {
  readonly terms: Float32Array;
  readonly offsets: Float32Array;
  readonly pairs: PairTable;
}

export type FittedItems = ItemFigures & { readonly sums: ReturnType<typeof countItems> };

export const buildItemModel = (
  { terms, offsets, pairs, sums }: FittedItems,
  item: number,
  keyOf: (item: number) => number,
): ItemModel => ({
  ...readItemCounts(sums, item),
  terms: [...sliceTerms(terms, item, itemTermCount)],
  before: mapRelatedKeys(readRelatedTerms(pairs, item), 1, keyOf),
  abilityOffset: offsets[item] ?? 0,
});

const readItemCounts = ({ answers, right, expected }: FittedItems['sums'], item: number) => ({
  answers: answers[item] ?? 0,
  right: right[item] ?? 0,
  expected: expected[item] ?? 0,
});

/** Needs the log-odds of `predictRange`. */
export function countItems(
  log: AnswerLog,
  learners: LearnerSelection,
  { countsForItem, logits }: FeatureStore,
) {
  const answers = sharedArrays.counts(log.items + 1);
  const right = sharedArrays.counts(log.items + 1);
  const expected = sharedArrays.doubles(log.items + 1);
  for (const index of collectAnswerIndices(log, learners)) {
    if (countsForItem[index] === 0) continue;
    const item = log.item[index] as number;
    answers[item] = (answers[item] as number) + 1;
    right[item] = (right[item] as number) + (log.correct[index] as number);
    expected[item] = (expected[item] as number) + sigmoid(logits[index] as number);
  }
  return { answers, right, expected };
}

/** Uses item counters of the training learners only; null without answers. */
export function measureServedLoss(
  log: AnswerLog,
  training: LearnerSelection,
  heldOut: LearnerSelection,
  store: FeatureStore,
  model: Pick<PredictionModel, 'itemPriorAnswers' | 'itemScale'>,
): number | null {
  const sums = countItems(log, training, store);
  const difficulty = Float64Array.from(sums.answers, (_, item) =>
    computeItemDifficulty(readItemCounts(sums, item), model),
  );
  const indices = collectAnswerIndices(log, heldOut);
  let loss = 0;
  for (const index of indices) {
    const itemTerm = difficulty[log.item[index] as number] as number;
    loss += computeAnswerLoss(
      sigmoid((store.logits[index] as number) + itemTerm),
      log.correct[index] as number,
    );
  }
  return indices.length === 0 ? null : loss / indices.length;
}
