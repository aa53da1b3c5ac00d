/** The served probability over a replayed log, the counters of items that it leads to, and its held-out loss. */

import { type AnswerLog, type Learners, placesOf, shared } from '../../base/answer-log.js';
import { answerLoss } from '../../base/metrics.js';
import { sigmoid } from '../../base/probability.js';
import type { ItemModel } from '../../catalogue/tenant-model.js';
import { rowWidth } from '../../prediction/features.js';
import { itemDifficulty, itemTermCount, logOddsWithoutItem, skillTermCount } from '../../prediction/model.js';
import type { FittedPrediction } from './blocks.js';
import type { FeatureStore } from './replay.js';

/** What a fit found for items, by index, place 0 being none. */
export interface ItemFigures {
  /** `itemTermCount` per item. */
  readonly terms: Float32Array;
  readonly offsets: Float32Array;
}

/** What answers on each item came to, place 0 being none. */
export interface ItemSums {
  readonly answers: Uint32Array;
  readonly right: Uint32Array;
  readonly expected: Float64Array;
}

/** Items as they are published: the figures, and the answers of all learners, the held-out ones too. */
export interface FittedItems extends ItemFigures {
  readonly sums: ItemSums;
}

const countsAt = ({ answers, right, expected }: ItemSums, item: number) => ({
  answers: answers[item] ?? 0,
  right: right[item] ?? 0,
  expected: expected[item] ?? 0,
});

const termsAt = (terms: Float32Array, index: number, count: number): Float32Array =>
  terms.subarray(index * count, (index + 1) * count);

export const itemModelAt = ({ terms, offsets, sums }: FittedItems, item: number): ItemModel => ({
  ...countsAt(sums, item),
  terms: [...termsAt(terms, item, itemTermCount)],
  abilityOffset: offsets[item] ?? 0,
});

/** Log-odds of the answers of the learners `from` to `to` - 1, after `replayLearners`. */
export function predictRange(
  log: AnswerLog,
  from: number,
  to: number,
  { model, skillTerms, itemTerms }: FittedPrediction,
  { rows, logits }: FeatureStore,
): void {
  const end = log.starts[to] as number;
  for (let place = log.starts[from] as number; place < end; place++) {
    const item = log.item[place] as number;
    const terms = termsAt(skillTerms, log.skill[place] as number, skillTermCount);
    const own = item === 0 ? null : termsAt(itemTerms, item, itemTermCount);
    logits[place] = logOddsWithoutItem(model, terms, own, rows, place * rowWidth);
  }
}

/** Counts the items' answers of these learners as serving would have counted them, after `predictRange`. */
export function countItems(
  log: AnswerLog,
  learners: Learners,
  { countsForItem, logits }: FeatureStore,
): ItemSums {
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

/** Mean log loss on the held-out answers, with items as the training learners' answers leave them; 0 without any. */
export function judgeServed(
  log: AnswerLog,
  training: Learners,
  heldOut: Learners,
  store: FeatureStore,
  itemPriorAnswers: number,
): number {
  const sums = countItems(log, training, store);
  const difficulty = Float64Array.from(sums.answers, (_, item) =>
    itemDifficulty(countsAt(sums, item), itemPriorAnswers),
  );
  const places = placesOf(log, heldOut);
  let loss = 0;
  for (const place of places) {
    const own = difficulty[log.item[place] as number] as number;
    loss += answerLoss(sigmoid((store.logits[place] as number) + own), log.correct[place] as number);
  }
  return loss / Math.max(1, places.length);
}
