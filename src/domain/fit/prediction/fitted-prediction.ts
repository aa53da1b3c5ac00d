import { toSharedFloats } from '../../base/answer-log.js';
import { round4 } from '../../base/common.js';
import { predictionConstants } from '../../base/prediction-constants.js';
import {
  computePriorAnswers,
  itemRunCount,
  type PredictionModel,
  skillRunCount,
} from '../../prediction/prediction-model.js';
import { skillPairWidth } from '../../prediction/related-terms.js';
import type { FitMemory } from './fit-memory.js';
import type { PairTable } from './pair-tables.js';
import { streakSteps, sumStreakSteps } from './streak-steps.js';

/** @param shift a of the calibration a + b eta @param spread b */
export function buildPrediction(
  { blocks, pairs, itemPairs, streaks }: FitMemory,
  itemVariance: number,
  { shift, spread }: Calibration,
) {
  const { weights, runs, patterns, course, itemsBefore } = blocks;
  const [bias = 0, ...weightTerms] = weights.terms;
  const [, ...means] = weights.means;
  const scaled = (terms: ArrayLike<number>): number[] => Array.from(terms, (term) => spread * term);
  const model: PredictionModel = {
    bias: shift + spread * bias,
    weights: scaled(weightTerms),
    means,
    runs: scaled(runs.terms.subarray(1)),
    streaks: scaled(sumStreakSteps(streaks.shared)),
    patterns: scaled(patterns.terms.subarray(1)),
    itemPriorAnswers: computePriorAnswers(itemVariance),
    itemScale: spread * predictionConstants.itemScale,
  };
  for (let pair = 0; pair < pairs.keys.length; pair++)
    pairs.terms[pair * skillPairWidth + 2] = course.terms[pair + 1] as number;
  itemPairs.terms.set(itemsBefore.terms.subarray(1));
  // + 0 removes negative zeros.
  const stored = (terms: ArrayLike<number>): Float32Array =>
    toSharedFloats(scaled(terms).map((term) => round4(term) + 0));
  const scaledTable = (table: PairTable): PairTable => ({ ...table, terms: stored(table.terms) });
  return {
    model,
    skillTerms: stored(buildSkillTerms(blocks, streaks)),
    itemTerms: toSharedFloats(scaled(buildItemTerms(blocks))),
    pairs: scaledTable(pairs),
    itemPairs: scaledTable(itemPairs),
  };
}

export interface Calibration {
  readonly shift: number;
  readonly spread: number;
}

function buildSkillTerms(
  { skills, skillRuns: runs }: FitMemory['blocks'],
  streaks: FitMemory['streaks'],
): number[] {
  const terms: number[] = [];
  const shared = sumStreakSteps(streaks.shared);
  for (let skill = 0; skill < skills.terms.length / skills.width; skill++) {
    terms.push(...skills.terms.subarray(skill * skills.width, (skill + 1) * skills.width));
    const skillStreaks = sumStreakSteps(streaks.own.subarray(skill * streakSteps, (skill + 1) * streakSteps));
    terms.push(...shared.map((term, i) => term + (skillStreaks[i] as number)));
    terms.push(...runs.terms.subarray(skill * skillRunCount + 1, (skill + 1) * skillRunCount + 1));
  }
  return terms;
}

/** Item counters replace the intercept. */
function buildItemTerms({ items, itemRuns: runs }: FitMemory['blocks']): number[] {
  const terms: number[] = [];
  for (let item = 0; item < items.terms.length / items.width; item++) {
    terms.push(...items.terms.subarray(item * items.width + 1, (item + 1) * items.width));
    terms.push(...runs.terms.subarray(item * itemRunCount + 1, (item + 1) * itemRunCount + 1));
  }
  return terms;
}

export type FittedPrediction = Readonly<ReturnType<typeof buildPrediction>>;
