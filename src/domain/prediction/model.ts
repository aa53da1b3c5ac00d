/**
 * Probability of a correct answer: the sigmoid of a sum of terms. Fixed signs ensure that a correct answer
 * never lowers the prediction for other items of the skill.
 */

import { type BktParameters, defaultParameters } from '../base/bkt-parameters.js';
import { clamp, logit, sigmoid } from '../base/common.js';
import { predictionModel } from '../base/prediction-constants.js';
import { itemPatterns, maxItemRun, maxStreak } from '../tracing/traces.js';
import {
  biasColumn,
  courseColumn,
  type FeatureName,
  type FeatureRow,
  features,
  itemBeforeColumn,
  itemColumns,
  patternColumn,
  runColumn,
  skillColumns,
  streakColumn,
} from './features.js';
import { beforeTerm, courseTerm, findKey, type Related } from './related.js';

/** BKT's prediction for a first answer. */
export const firstLogOdds = ({ pInit, pGuess, pSlip }: BktParameters): number =>
  logit(pInit * (1 - pSlip) + (1 - pInit) * pGuess);

const bktWeight = features[0].start;

export const streakCount = 2 * maxStreak + 1;

/** Stored as JSON. Before a fit, the first prediction equals BKT. */
export const startModel = {
  /** Log-odds at the means of all features. */
  bias: (1 - bktWeight) * firstLogOdds(defaultParameters),
  weights: features.map(({ start }): number => start),
  /** Subtracted from the features. */
  means: features.map(() => 0),
  /** Terms of 1 to 8 consecutive wrong answers to the item. */
  runs: new Array<number>(maxItemRun).fill(0),
  /** Terms from wrong to correct streaks, never falling. */
  streaks: new Array<number>(streakCount).fill(0),
  patterns: new Array<number>(itemPatterns).fill(0),
  itemPriorAnswers: predictionModel.items.startPrior as number,
  itemScale: predictionModel.itemScale as number,
};

export type PredictionModel = Readonly<typeof startModel>;

/** Order of skill terms: intercept, slopes, streaks, runs of wrong answers to an item. */
const streaksAt = 1 + skillColumns.length;
const skillRunsAt = streaksAt + streakCount;
export const skillRuns = 4;
export const skillTermCount = skillRunsAt + skillRuns;

/** Order of item terms: slopes, runs of wrong answers. */
const itemRunsAt = itemColumns.length;
export const itemRuns = 3;
export const itemTermCount = itemRunsAt + itemRuns;

export interface Terms {
  readonly skill: ArrayLike<number>;
  /** Null without an item or its fit. */
  readonly item: ArrayLike<number> | null;
  readonly related: Related;
  readonly itemsBefore: Related;
  readonly itemDifficulty: number;
}

type Slopes = Pick<Terms, 'skill' | 'item'>;
type TermsWithoutItem = Omit<Terms, 'itemDifficulty'>;

export interface Term {
  readonly name: FeatureName | TableName | 'base' | 'skill' | 'item';
  readonly logits: number;
}

/** Index of the column's slope, -1 if none. */
const skillPlaces = Int8Array.from(features, (_, column) => skillColumns.indexOf(column));
const itemPlaces = Int8Array.from(features, (_, column) => itemColumns.indexOf(column));
const signs = Int8Array.from(features, ({ sign }) => sign);

/** 0 if slopes of skill and item would change the sign. */
function weightOf(weights: readonly number[], { skill, item }: Slopes, column: number): number {
  const skillPlace = skillPlaces[column] as number;
  const itemPlace = itemPlaces[column] as number;
  let weight = weights[column] as number;
  if (skillPlace >= 0) weight += skill[1 + skillPlace] as number;
  if (item !== null && itemPlace >= 0) weight += item[itemPlace] as number;
  return (signs[column] as number) * weight < 0 ? 0 : weight;
}

const tables = {
  itemRun: ({ runs }, { skill, item }, rows, from) => {
    const run = rows[from + runColumn] as number;
    if (run === 0) return 0;
    const own = skill[skillRunsAt + Math.min(run, skillRuns) - 1] as number;
    const items = item === null ? 0 : (item[itemRunsAt + Math.min(run, itemRuns) - 1] as number);
    return (runs[Math.min(run, maxItemRun) - 1] as number) + own + items;
  },
  streak: (_, { skill }, rows, from) =>
    skill[streaksAt + (rows[from + streakColumn] as number) + maxStreak] as number,
  itemPattern: ({ patterns }, _, rows, from) => {
    const pattern = rows[from + patternColumn] as number;
    return pattern === 0 ? 0 : (patterns[pattern - 1] as number);
  },
  practisedBefore: (_, { related }, rows, from) => beforeTerm(related, rows, from),
  course: (_, { related }, rows, from) => courseTerm(related, rows[from + courseColumn] as number),
  itemBefore: (_, { itemsBefore }, rows, from) => {
    const place = findKey(itemsBefore.keys, rows[from + itemBeforeColumn] as number);
    return place < 0 ? 0 : (itemsBefore.terms[place] as number);
  },
  bias: (_, __, rows, from) => rows[from + biasColumn] as number,
} as const satisfies Record<
  string,
  (model: PredictionModel, terms: TermsWithoutItem, rows: FeatureRow, from: number) => number
>;
type TableName = keyof typeof tables;

export const predict = (model: PredictionModel, terms: Terms, row: FeatureRow): number =>
  sigmoid(logOddsWithoutItem(model, terms, row, 0) + terms.itemDifficulty);

export function logOddsWithoutItem(
  model: PredictionModel,
  terms: TermsWithoutItem,
  rows: FeatureRow,
  from: number,
): number {
  const { weights, means } = model;
  let logits = model.bias + (terms.skill[0] as number);
  logits += tables.itemRun(model, terms, rows, from) + tables.streak(model, terms, rows, from);
  logits += tables.itemPattern(model, terms, rows, from) + tables.practisedBefore(model, terms, rows, from);
  logits += tables.course(model, terms, rows, from) + tables.itemBefore(model, terms, rows, from);
  logits += tables.bias(model, terms, rows, from);
  for (let column = 0; column < features.length; column++) {
    const distance = (rows[from + column] as number) - (means[column] as number);
    logits += weightOf(weights, terms, column) * distance;
  }
  return logits;
}

/** Omits zero terms. An empty history has no terms, because the base includes the means. */
export function explain(model: PredictionModel, terms: Terms, row: FeatureRow): Term[] {
  const weights = features.map((_, column) => weightOf(model.weights, terms, column));
  const centred = weights.reduce((sum, weight, column) => sum + weight * (model.means[column] as number), 0);
  const all: Term[] = [
    { name: 'base', logits: model.bias - centred },
    { name: 'skill', logits: terms.skill[0] as number },
    { name: 'item', logits: terms.itemDifficulty },
    ...Object.entries(tables).map(([name, term]) => ({
      name: name as TableName,
      logits: term(model, terms, row, 0),
    })),
    ...features.map(({ name }, column) => ({
      name,
      logits: (weights[column] as number) * (row[column] as number),
    })),
  ];
  return all.filter(({ name, logits }) => name === 'base' || logits !== 0);
}

/** With these terms, the first prediction equals BKT. */
export function startTerms(parameters: BktParameters): number[] {
  const terms = new Array<number>(skillTermCount).fill(0);
  terms[0] = (1 - bktWeight) * (firstLogOdds(parameters) - firstLogOdds(defaultParameters));
  return terms;
}

export function unseenTerms({ streaks }: PredictionModel): number[] {
  const terms = startTerms(defaultParameters);
  for (const [i, term] of streaks.entries()) terms[streaksAt + i] = term;
  return terms;
}

/** Sums can be added in any order. */
export interface ItemCounts {
  readonly answers: number;
  readonly right: number;
  /** Sum of predictions without the item's term. */
  readonly expected: number;
}

const probabilityFloor = 1e-3;
const inside = (p: number): number => clamp(p, probabilityFloor, 1 - probabilityFloor);

/** Logits; positive is easier. */
export function itemDifficulty(
  { answers, right, expected }: ItemCounts,
  { itemPriorAnswers: priorAnswers, itemScale }: Pick<PredictionModel, 'itemPriorAnswers' | 'itemScale'>,
): number {
  if (answers === 0) return 0;
  const mean = inside(expected / answers);
  const share = inside((right + priorAnswers * mean) / (answers + priorAnswers));
  return itemScale * (logit(share) - logit(mean));
}

export function priorAnswersFor(variance: number): number {
  const { priorOver, startPrior } = predictionModel.items;
  return Math.max(startPrior, priorOver / variance);
}
