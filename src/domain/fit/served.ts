/**
 * The served probability over a whole log, as steps of a fit: BKT and traces replayed for every learner, terms
 * summed up, items counted, and what the held-out learners say. Columns are by place in the log and shared, so that
 * each step may run for a range of learners in another thread.
 */

import type { AnswerLog } from '../base/answer-log.js';
import { sigmoid } from '../base/probability.js';
import { rowWidth } from '../prediction/features.js';
import { itemDifficulty } from '../prediction/items.js';
import {
  itemTermCount,
  logOddsWithoutItem,
  type PredictionModel,
  skillTermCount,
} from '../prediction/model.js';
import { difficultyShift } from '../tracing/bkt.js';
import { lossOf, type TracedModel, traceLog } from './bkt/held-out.js';
import type { AbilityOffsets } from './prediction/offsets.js';
import { type FeatureStore, newFeatureStore, replayLearners } from './prediction/replay.js';

/** Which learners a fit learns from, one byte each: 1 for those, 0 for the held-out ones. */
export type Training = Uint8Array;

/** Memory for one replay at a time. */
export interface ServedMemory {
  /** Probability of a right answer by BKT. */
  readonly bkt: Float32Array;
  /** Shift of log-odds by the supplied difficulty; null in a log without difficulties. */
  readonly shifts: Float32Array | null;
  readonly store: FeatureStore;
  /** Log-odds of a right answer, the item's own term left out. */
  readonly logits: Float32Array;
}

export function newServedMemory({ skill, difficulty }: AnswerLog): ServedMemory {
  const answers = skill.length;
  const column = (): Float32Array => new Float32Array(new SharedArrayBuffer(4 * answers));
  return {
    bkt: column(),
    shifts: difficulty.some((b) => !Number.isNaN(b)) ? column() : null,
    store: newFeatureStore(answers),
    logits: column(),
  };
}

/** Terms of the served probability, by index of skill and item. */
export interface ServedTerms {
  readonly prediction: PredictionModel;
  /** `skillTermCount` per skill. */
  readonly skillTerms: Float32Array;
  /** `itemTermCount` per item, place 0 being none. */
  readonly itemTerms: Float32Array;
}

/** What answers on each item came to, place 0 being none. */
export interface ItemSums {
  readonly answers: Uint32Array;
  readonly right: Uint32Array;
  readonly expected: Float64Array;
}

const inRange = (from: number, to: number) => (learner: number) => learner >= from && learner < to;

/** How many learners a step went through. */
export interface Done {
  readonly learners: number;
}

/** BKT's probabilities and difficulty shifts of the learners `from` to `to` - 1. */
export function traceBkt(
  log: AnswerLog,
  from: number,
  to: number,
  model: TracedModel,
  { bkt, shifts }: ServedMemory,
): Done {
  traceLog(log, inRange(from, to), model, (place, pCorrect) => {
    bkt[place] = pCorrect;
    if (shifts !== null) shifts[place] = shiftAt(log, place, model);
  });
  return { learners: to - from };
}

function shiftAt(log: AnswerLog, place: number, { skills, difficultyScale, bounds }: TracedModel): number {
  const difficulty = log.difficulty[place] as number;
  const { parameters, difficultyMean } = skills[log.skill[place] as number] as TracedModel['skills'][number];
  if (Number.isNaN(difficulty)) return 0;
  return difficultyShift(parameters, difficulty - difficultyMean, difficultyScale, bounds);
}

/** Features of the same learners, after `traceBkt`. */
export function replayRange(
  log: AnswerLog,
  from: number,
  to: number,
  difficultyMeans: readonly number[],
  offsets: AbilityOffsets,
  { bkt, shifts, store }: ServedMemory,
): Done {
  replayLearners(log, from, to, { bkt, shifts, difficultyMeans, offsets }, store);
  return { learners: to - from };
}

/** Log-odds of the same learners' answers, after `replayRange`. */
export function predictRange(
  log: AnswerLog,
  from: number,
  to: number,
  { prediction, skillTerms, itemTerms }: ServedTerms,
  { store, logits }: ServedMemory,
): Done {
  const end = log.starts[to] as number;
  for (let place = log.starts[from] as number; place < end; place++) {
    const skill = log.skill[place] as number;
    const item = log.item[place] as number;
    const terms = skillTerms.subarray(skill * skillTermCount, (skill + 1) * skillTermCount);
    const own = item === 0 ? null : itemTerms.subarray(item * itemTermCount, (item + 1) * itemTermCount);
    logits[place] = logOddsWithoutItem(prediction, terms, own, store.rows, place * rowWidth);
  }
  return { learners: to - from };
}

/** Counts the items' answers of all learners, or of those who train alone, as serving would have counted them. */
export function countItems(
  log: AnswerLog,
  training: Training | null,
  { store, logits }: Pick<ServedMemory, 'store' | 'logits'>,
): ItemSums {
  const sums = newItemSums(log.items);
  for (let learner = 0; learner + 1 < log.starts.length; learner++) {
    if (training !== null && training[learner] === 0) continue;
    const end = log.starts[learner + 1] as number;
    for (let place = log.starts[learner] as number; place < end; place++) {
      if (store.countsForItem[place] === 1) countAnswer(sums, log, place, logits[place] as number);
    }
  }
  return sums;
}

const newItemSums = (items: number): ItemSums => ({
  answers: new Uint32Array(new SharedArrayBuffer(4 * (items + 1))),
  right: new Uint32Array(new SharedArrayBuffer(4 * (items + 1))),
  expected: new Float64Array(new SharedArrayBuffer(8 * (items + 1))),
});

function countAnswer(
  { answers, right, expected }: ItemSums,
  log: AnswerLog,
  place: number,
  logits: number,
): void {
  const item = log.item[place] as number;
  answers[item] = (answers[item] as number) + 1;
  right[item] = (right[item] as number) + (log.correct[place] as number);
  expected[item] = (expected[item] as number) + sigmoid(logits);
}

/** Log loss of the served probability on the held-out learners' answers, items as the training learners left them. */
export function judgeServed(
  log: AnswerLog,
  training: Training,
  { answers, right, expected }: ItemSums,
  { logits }: Pick<ServedMemory, 'logits'>,
  itemPriorAnswers: number,
): { readonly answers: number; readonly logLoss: number } {
  const difficulty = Float64Array.from(answers, (count, item) =>
    itemDifficulty(
      { answers: count, right: right[item] as number, expected: expected[item] as number },
      itemPriorAnswers,
    ),
  );
  let judged = 0;
  let loss = 0;
  for (let learner = 0; learner + 1 < log.starts.length; learner++) {
    if (training[learner] === 1) continue;
    const end = log.starts[learner + 1] as number;
    for (let place = log.starts[learner] as number; place < end; place++) {
      const item = log.item[place] as number;
      const own = item === 0 ? 0 : (difficulty[item] as number);
      loss += lossOf(sigmoid((logits[place] as number) + own), log.correct[place] as number);
      judged++;
    }
  }
  return { answers: judged, logLoss: loss / Math.max(1, judged) };
}
