/**
 * The served probability of a right answer: the sigmoid of a sum of terms, each of which can be shown. For another item
 * of the same skill, a right answer never lowers the probability and a wrong one never raises it: every weight keeps the
 * sign of its feature, the slopes of skill and item included.
 */

import { clamp, logit, sigmoid } from '../base/common.js';
import { type BktParameters, defaultParameters, predictionModel } from '../base/params.js';
import { maxItemRun } from '../tracing/traces.js';
import {
  type FeatureName,
  type FeatureRow,
  features,
  itemColumns,
  runColumn,
  skillColumns,
} from './features.js';

/** Log-odds that BKT gives the first answer of a learner. */
export const firstLogOdds = ({ pInit, pGuess, pSlip }: BktParameters): number =>
  logit(pInit * (1 - pSlip) + (1 - pInit) * pGuess);

const bktWeight = features[0].start;

/**
 * The weights that all skills and items of a tenant share, by column; plain JSON. These are in force before the first
 * fit: a learner's first answer on a skill with default parameters has BKT's own p.
 */
export const startModel = {
  /** Log-odds of an answer whose features all have their means. */
  bias: (1 - bktWeight) * firstLogOdds(defaultParameters),
  weights: features.map(({ start }): number => start),
  /** Subtracted from the features: slopes of skills and items turn about the mean. */
  means: features.map(() => 0),
  /** Terms of 1 to 8 wrong answers in a row on the item up to now. */
  runs: new Array<number>(maxItemRun).fill(0),
  /** Answers as expected that are added to an item's own (see `itemDifficulty`). */
  itemPriorAnswers: predictionModel.items.startPrior as number,
};

export type PredictionModel = Readonly<typeof startModel>;

export const skillTermCount = 1 + skillColumns.length;
export const itemTermCount = itemColumns.length;

/** What is known of the skill and the item in question, added to the weights. */
export interface Terms {
  /** Intercept, then slopes on `skillColumns`; null for a skill that no fit has seen. */
  readonly skill: ArrayLike<number> | null;
  /** Slopes on `itemColumns`; null without an item, or for one that no fit has seen. */
  readonly item: ArrayLike<number> | null;
  /** The item's own term; 0 where nothing is known. */
  readonly itemDifficulty: number;
}

type Slopes = Pick<Terms, 'skill' | 'item'>;

export interface Term {
  readonly name: FeatureName | 'base' | 'skill' | 'item' | 'itemRun';
  readonly logits: number;
}

/** Slope of a column in those of a skill and of an item; -1: none. */
const skillPlaces = Int8Array.from(features, (_, column) => skillColumns.indexOf(column));
const itemPlaces = Int8Array.from(features, (_, column) => itemColumns.indexOf(column));
const signs = Int8Array.from(features, ({ sign }) => sign);

/** Weight of a feature for this skill and item, cut at 0 where it would lose its sign. */
function weightOf(weights: readonly number[], { skill, item }: Slopes, column: number): number {
  const skillPlace = skillPlaces[column] as number;
  const itemPlace = itemPlaces[column] as number;
  let weight = weights[column] as number;
  if (skill !== null && skillPlace >= 0) weight += skill[1 + skillPlace] as number;
  if (item !== null && itemPlace >= 0) weight += item[itemPlace] as number;
  return (signs[column] as number) * weight < 0 ? 0 : weight;
}

function runTerm({ runs }: PredictionModel, rows: FeatureRow, from: number): number {
  const run = rows[from + runColumn] as number;
  return run === 0 ? 0 : (runs[Math.min(run, maxItemRun) - 1] ?? 0);
}

/** Probability of a right answer. @param row of features as `writeFeatures` writes it */
export const predict = (model: PredictionModel, terms: Terms, row: FeatureRow): number =>
  sigmoid(logOddsWithoutItem(model, terms, row, 0) + terms.itemDifficulty);

/** Log-odds of a right answer without the item's own term: what its counters expect. @param from of the row in `rows` */
export function logOddsWithoutItem(
  model: PredictionModel,
  terms: Slopes,
  rows: FeatureRow,
  from: number,
): number {
  const { weights, means } = model;
  let logits = model.bias + (terms.skill?.[0] ?? 0) + runTerm(model, rows, from);
  for (let column = 0; column < features.length; column++) {
    const distance = (rows[from + column] as number) - (means[column] as number);
    logits += weightOf(weights, terms, column) * distance;
  }
  return logits;
}

/** The terms of `predict` that are not 0. The means go into the base, so that absent history has no term. */
export function explain(model: PredictionModel, terms: Terms, row: FeatureRow): Term[] {
  const weights = features.map((_, column) => weightOf(model.weights, terms, column));
  const centred = weights.reduce((sum, weight, column) => sum + weight * (model.means[column] as number), 0);
  const all: Term[] = [
    { name: 'base', logits: model.bias - centred },
    { name: 'skill', logits: terms.skill?.[0] ?? 0 },
    { name: 'item', logits: terms.itemDifficulty },
    { name: 'itemRun', logits: runTerm(model, row, 0) },
    ...features.map(({ name }, column) => ({
      name,
      logits: (weights[column] as number) * (row[column] as number),
    })),
  ];
  return all.filter(({ name, logits }) => name === 'base' || logits !== 0);
}

/** Terms with `startModel` for a skill with parameters of its own: there too, the first p is BKT's. */
export function startTerms(parameters: BktParameters): number[] {
  const terms = new Array<number>(skillTermCount).fill(0);
  terms[0] = (1 - bktWeight) * (firstLogOdds(parameters) - firstLogOdds(defaultParameters));
  return terms;
}

/** What answers on one item came to: sums, so that processes add to them in any order. */
export interface ItemCounts {
  readonly answers: number;
  readonly right: number;
  /** Sum of the probabilities of a right answer, the item's own term left out. */
  readonly expected: number;
}

const probabilityFloor = 1e-3;
const inside = (p: number): number => clamp(p, probabilityFloor, 1 - probabilityFloor);

/**
 * The item's own term, in logits, above 0 for one that is easier than its skill: how much better than expected its
 * answers are, drawn to 0 as if it had `priorAnswers` more that came out as expected; 0 without answers.
 */
export function itemDifficulty({ answers, right, expected }: ItemCounts, priorAnswers: number): number {
  if (answers === 0) return 0;
  const mean = inside(expected / answers);
  const share = inside((right + priorAnswers * mean) / (answers + priorAnswers));
  return predictionModel.itemScale * (logit(share) - logit(mean));
}

export function priorAnswersFor(variance: number): number {
  const { priorOver, startPrior } = predictionModel.items;
  return Math.max(startPrior, priorOver / variance);
}
