/**
 * Probability of a correct answer: the sigmoid of a sum of terms. Fixed signs ensure that a correct answer
 * never lowers the prediction for other items of the skill.
 */

import { type BktParameters, defaultParameters } from '../base/bkt-parameters.js';
import { clamp, logit, sigmoid } from '../base/common.js';
import { predictionConstants } from '../base/prediction-constants.js';
import { itemPatternCount, maxItemRun, maxStreak } from '../tracing/traces.js';
import {
  biasColumn,
  courseColumn,
  type FeatureName,
  type FeatureRow,
  features,
  itemColumns,
  patternColumn,
  previousItemColumn,
  runColumn,
  skillColumns,
  streakColumn,
} from './features.js';
import { findCourseTerm, findKeyIndex, type RelatedTerms, sumPreviousSkills } from './related-terms.js';

/** BKT's prediction for a first answer. */
export const computeFirstLogOdds = ({ pInit, pGuess, pSlip }: BktParameters): number =>
  logit(pInit * (1 - pSlip) + (1 - pInit) * pGuess);

const bktWeight = features[0].start;

export const streakCount = 2 * maxStreak + 1;

/** Stored as JSON. Before a fit, the first prediction equals BKT. */
export const initialPredictionModel = {
  /** Log-odds at the means of all features. */
  bias: (1 - bktWeight) * computeFirstLogOdds(defaultParameters),
  weights: features.map(({ start }): number => start),
  /** Subtracted from the features. */
  means: features.map(() => 0),
  /** Terms of 1 to 8 consecutive wrong answers to the item. */
  runs: new Array<number>(maxItemRun).fill(0),
  /** For skills without a fit: terms from wrong to correct streaks, never falling. */
  streaks: new Array<number>(streakCount).fill(0),
  patterns: new Array<number>(itemPatternCount).fill(0),
  itemPriorAnswers: predictionConstants.items.startPrior as number,
  itemScale: predictionConstants.itemScale as number,
};

export type PredictionModel = Readonly<typeof initialPredictionModel>;

/** Order of skill terms: intercept, slopes, streaks, runs of wrong answers to an item. */
const streakOffset = 1 + skillColumns.length;
const skillRunOffset = streakOffset + streakCount;
export const skillRunCount = 4;
export const skillTermCount = skillRunOffset + skillRunCount;

/** Order of item terms: slopes, runs of wrong answers. */
const itemRunOffset = itemColumns.length;
export const itemRunCount = 3;
export const itemTermCount = itemRunOffset + itemRunCount;

export interface PredictionTerms {
  readonly skill: ArrayLike<number>;
  /** Null without an item or its fit. */
  readonly item: ArrayLike<number> | null;
  readonly related: RelatedTerms;
  readonly itemsBefore: RelatedTerms;
  readonly itemDifficulty: number;
}

type Slopes = Pick<PredictionTerms, 'skill' | 'item'>;
type TermsWithoutItem = Omit<PredictionTerms, 'itemDifficulty'>;

export interface Term {
  readonly name: FeatureName | TermFunctionName | 'base' | 'skill' | 'item';
  readonly logits: number;
}

/** Index of the column's slope, -1 if none. */
const skillSlopeIndex = Int8Array.from(features, (_, column) => skillColumns.indexOf(column));
const itemSlopeIndex = Int8Array.from(features, (_, column) => itemColumns.indexOf(column));
const signs = Int8Array.from(features, ({ sign }) => sign);

/** 0 if slopes of skill and item would change the sign. */
function computeWeight(weights: readonly number[], { skill, item }: Slopes, column: number): number {
  const skillPlace = skillSlopeIndex[column] as number;
  const itemPlace = itemSlopeIndex[column] as number;
  let weight = weights[column] as number;
  if (skillPlace >= 0) weight += skill[1 + skillPlace] as number;
  if (item !== null && itemPlace >= 0) weight += item[itemPlace] as number;
  return (signs[column] as number) * weight < 0 ? 0 : weight;
}

const termFunctions = {
  itemRun: ({ runs }, { skill, item }, rows, from) => {
    const run = rows[from + runColumn] as number;
    if (run === 0) return 0;
    const skillTerm = skill[skillRunOffset + Math.min(run, skillRunCount) - 1] as number;
    const itemTerm = item === null ? 0 : (item[itemRunOffset + Math.min(run, itemRunCount) - 1] as number);
    return (runs[Math.min(run, maxItemRun) - 1] as number) + skillTerm + itemTerm;
  },
  streak: (_, { skill }, rows, from) =>
    skill[streakOffset + (rows[from + streakColumn] as number) + maxStreak] as number,
  itemPattern: ({ patterns }, _, rows, from) => {
    const pattern = rows[from + patternColumn] as number;
    return pattern === 0 ? 0 : (patterns[pattern - 1] as number);
  },
  practisedBefore: (_, { related }, rows, from) => sumPreviousSkills(related, rows, from),
  course: (_, { related }, rows, from) => findCourseTerm(related, rows[from + courseColumn] as number),
  itemBefore: (_, { itemsBefore }, rows, from) => {
    const place = findKeyIndex(itemsBefore.keys, rows[from + previousItemColumn] as number);
    return place < 0 ? 0 : (itemsBefore.terms[place] as number);
  },
  bias: (_, __, rows, from) => rows[from + biasColumn] as number,
} as const satisfies Record<
  string,
  (model: PredictionModel, terms: TermsWithoutItem, rows: FeatureRow, from: number) => number
>;
type TermFunctionName = keyof typeof termFunctions;

export const predict = (model: PredictionModel, terms: PredictionTerms, row: FeatureRow): number =>
  sigmoid(logOddsWithoutItem(model, terms, row, 0) + terms.itemDifficulty);

export function logOddsWithoutItem(
  model: PredictionModel,
  terms: TermsWithoutItem,
  rows: FeatureRow,
  from: number,
): number {
  const { weights, means } = model;
  let logits = model.bias + (terms.skill[0] as number);
  logits += termFunctions.itemRun(model, terms, rows, from) + termFunctions.streak(model, terms, rows, from);
  logits +=
    termFunctions.itemPattern(model, terms, rows, from) +
    termFunctions.practisedBefore(model, terms, rows, from);
  logits +=
    termFunctions.course(model, terms, rows, from) + termFunctions.itemBefore(model, terms, rows, from);
  logits += termFunctions.bias(model, terms, rows, from);
  for (let column = 0; column < features.length; column++) {
    const distance = (rows[from + column] as number) - (means[column] as number);
    logits += computeWeight(weights, terms, column) * distance;
  }
  return logits;
}

/** Omits zero terms. An empty history has no terms, because the base includes the means. */
export function explainPrediction(model: PredictionModel, terms: PredictionTerms, row: FeatureRow): Term[] {
  const weights = features.map((_, column) => computeWeight(model.weights, terms, column));
  const centred = weights.reduce((sum, weight, column) => sum + weight * (model.means[column] as number), 0);
  const all: Term[] = [
    { name: 'base', logits: model.bias - centred },
    { name: 'skill', logits: terms.skill[0] as number },
    { name: 'item', logits: terms.itemDifficulty },
    ...Object.entries(termFunctions).map(([name, term]) => ({
      name: name as TermFunctionName,
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
export function buildInitialTerms(parameters: BktParameters): number[] {
  const terms = new Array<number>(skillTermCount).fill(0);
  terms[0] = (1 - bktWeight) * (computeFirstLogOdds(parameters) - computeFirstLogOdds(defaultParameters));
  return terms;
}

export function buildUnseenTerms({ streaks }: PredictionModel): number[] {
  const terms = buildInitialTerms(defaultParameters);
  for (const [i, term] of streaks.entries()) terms[streakOffset + i] = term;
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
const clampProbability = (p: number): number => clamp(p, probabilityFloor, 1 - probabilityFloor);

/** Logits; positive is easier. */
export function computeItemDifficulty(
  { answers, right, expected }: ItemCounts,
  { itemPriorAnswers: priorAnswers, itemScale }: Pick<PredictionModel, 'itemPriorAnswers' | 'itemScale'>,
): number {
  if (answers === 0) return 0;
  const mean = clampProbability(expected / answers);
  const share = clampProbability((right + priorAnswers * mean) / (answers + priorAnswers));
  return itemScale * (logit(share) - logit(mean));
}

export function computePriorAnswers(variance: number): number {
  const { priorOver, startPrior } = predictionConstants.items;
  return Math.max(startPrior, priorOver / variance);
}
