import { sharedFloats } from '../../base/answer-log.js';
import { round4 } from '../../base/common.js';
import { predictionModel } from '../../base/prediction-constants.js';
import { itemRuns, type PredictionModel, priorAnswersFor, skillRuns } from '../../prediction/model.js';
import { skillPairTerms } from '../../prediction/related.js';
import type { FitMemory } from './blocks.js';
import type { PairTable } from './pair-tables.js';
import { streakSteps, streakTerms } from './streaks.js';

/** @param shift a of the calibration a + b eta @param spread b */
export function fittedPrediction(
  { blocks, pairs, itemPairs, streaks }: FitMemory,
  itemVariance: number,
  { shift, spread }: Calibration,
) {
  const { weights, runs, patterns, course, itemsBefore } = blocks;
  const [bias = 0, ...own] = weights.terms;
  const [, ...means] = weights.means;
  const scaled = (terms: ArrayLike<number>): number[] => Array.from(terms, (term) => spread * term);
  const model: PredictionModel = {
    bias: shift + spread * bias,
    weights: scaled(own),
    means,
    runs: scaled(runs.terms.subarray(1)),
    streaks: scaled(streakTerms(streaks.shared)),
    patterns: scaled(patterns.terms.subarray(1)),
    itemPriorAnswers: priorAnswersFor(itemVariance),
    itemScale: spread * predictionModel.itemScale,
  };
  for (let pair = 0; pair < pairs.keys.length; pair++)
    pairs.terms[pair * skillPairTerms + 2] = course.terms[pair + 1] as number;
  itemPairs.terms.set(itemsBefore.terms.subarray(1));
  // + 0 removes negative zeros.
  const stored = (terms: ArrayLike<number>): Float32Array =>
    sharedFloats(scaled(terms).map((term) => round4(term) + 0));
  const scaledTable = (table: PairTable): PairTable => ({ ...table, terms: stored(table.terms) });
  return {
    model,
    skillTerms: stored(skillTermsOf(blocks, streaks)),
    itemTerms: sharedFloats(scaled(itemTermsOf(blocks))),
    pairs: scaledTable(pairs),
    itemPairs: scaledTable(itemPairs),
  };
}

export interface Calibration {
  readonly shift: number;
  readonly spread: number;
}

function skillTermsOf(
  { skills, skillRuns: runs }: FitMemory['blocks'],
  streaks: FitMemory['streaks'],
): number[] {
  const terms: number[] = [];
  const shared = streakTerms(streaks.shared);
  for (let skill = 0; skill < skills.terms.length / skills.width; skill++) {
    terms.push(...skills.terms.subarray(skill * skills.width, (skill + 1) * skills.width));
    const own = streakTerms(streaks.own.subarray(skill * streakSteps, (skill + 1) * streakSteps));
    terms.push(...shared.map((term, i) => term + (own[i] as number)));
    terms.push(...runs.terms.subarray(skill * skillRuns + 1, (skill + 1) * skillRuns + 1));
  }
  return terms;
}

/** Item counters replace the intercept. */
function itemTermsOf({ items, itemRuns: runs }: FitMemory['blocks']): number[] {
  const terms: number[] = [];
  for (let item = 0; item < items.terms.length / items.width; item++) {
    terms.push(...items.terms.subarray(item * items.width + 1, (item + 1) * items.width));
    terms.push(...runs.terms.subarray(item * itemRuns + 1, (item + 1) * itemRuns + 1));
  }
  return terms;
}

export type FittedPrediction = Readonly<ReturnType<typeof fittedPrediction>>;
