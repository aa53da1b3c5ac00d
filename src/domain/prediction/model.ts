/**
 * The served probability of a right answer: the sigmoid of a sum of terms. Weights keep their signs, so that
 * a right answer never lowers it for another item of the skill.
 */

import { clamp, logit, sigmoid } from '../base/common.js';
import { type BktParameters, defaultParameters, predictionModel } from '../base/params.js';
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

/** Log-odds that BKT gives the first answer of a learner. */
export const firstLogOdds = ({ pInit, pGuess, pSlip }: BktParameters): number =>
  logit(pInit * (1 - pSlip) + (1 - pInit) * pGuess);

const bktWeight = features[0].start;

/** A place for each streak, 0 in the middle. */
export const streakCount = 2 * maxStreak + 1;

/** Weights shared by a tenant's skills and items; plain JSON. Before a fit a first answer has BKT's p. */
export const startModel = {
  /** Log-odds of an answer whose features all have their means. */
  bias: (1 - bktWeight) * firstLogOdds(defaultParameters),
  weights: features.map(({ start }): number => start),
  /** Subtracted from the features: slopes of skills and items turn about the mean. */
  means: features.map(() => 0),
  /** Terms of 1 to 8 wrong answers in a row on the item up to now. */
  runs: new Array<number>(maxItemRun).fill(0),
  /** Terms of a streak on a skill that no fit has seen, from `maxStreak` wrong answers to as many right ones; never falling. */
  streaks: new Array<number>(streakCount).fill(0),
  /** Terms of `itemPattern` from 1 on. */
  patterns: new Array<number>(itemPatterns).fill(0),
  /** Answers as expected that are added to an item's own (see `itemDifficulty`). */
  itemPriorAnswers: predictionModel.items.startPrior as number,
  /** What its counters say of an item counts by so much. */
  itemScale: predictionModel.itemScale as number,
};

export type PredictionModel = Readonly<typeof startModel>;

/** Terms of a skill: intercept, slopes on `skillColumns`, streaks as in the model, runs of wrong answers on an item. */
const streaksAt = 1 + skillColumns.length;
const skillRunsAt = streaksAt + streakCount;
export const skillRuns = 4;
export const skillTermCount = skillRunsAt + skillRuns;

/** Terms of an item: slopes on `itemColumns`, runs of wrong answers on it. */
const itemRunsAt = itemColumns.length;
export const itemRuns = 3;
export const itemTermCount = itemRunsAt + itemRuns;

/** What is known of the skill and the item in question, added to the weights. */
export interface Terms {
  /** `skillTermCount`. */
  readonly skill: ArrayLike<number>;
  /** `itemTermCount`; null without an item, or for one that no fit has seen. */
  readonly item: ArrayLike<number> | null;
  /** Of the skill with other skills, and of the item with items before it. */
  readonly related: Related;
  readonly itemsBefore: Related;
  /** The item's own term; 0 where nothing is known. */
  readonly itemDifficulty: number;
}

type Slopes = Pick<Terms, 'skill' | 'item'>;
type TermsWithoutItem = Omit<Terms, 'itemDifficulty'>;

export interface Term {
  readonly name: FeatureName | TableName | 'base' | 'skill' | 'item';
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
  if (skillPlace >= 0) weight += skill[1 + skillPlace] as number;
  if (item !== null && itemPlace >= 0) weight += item[itemPlace] as number;
  return (signs[column] as number) * weight < 0 ? 0 : weight;
}

/** Terms that stand in tables: by what the row says of the answers before, beside its features. */
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

/** Probability of a right answer. @param row of features as `writeFeatures` writes it */
export const predict = (model: PredictionModel, terms: Terms, row: FeatureRow): number =>
  sigmoid(logOddsWithoutItem(model, terms, row, 0) + terms.itemDifficulty);

/** Log-odds of a right answer without the item's own term: what its counters expect. @param from of the row in `rows` */
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

/** The terms of `predict` that are not 0. The means go into the base, so that absent history has no term. */
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

/** Terms with `startModel` for a skill with parameters of its own: there too, the first p is BKT's. */
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

/** What answers on one item came to: sums, so that processes add to them in any order. */
export interface ItemCounts {
  readonly answers: number;
  readonly right: number;
  /** Sum of the probabilities of a right answer, the item's own term left out. */
  readonly expected: number;
}

const probabilityFloor = 1e-3;
const inside = (p: number): number => clamp(p, probabilityFloor, 1 - probabilityFloor);

/** The item's own term, logits (above 0: easier), shrunk by `itemPriorAnswers` answers as expected. */
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
