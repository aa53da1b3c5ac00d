/**
 * Fits the served probability to a log whose features were replayed: weights that all share, and terms of skills,
 * items and runs. Convex but for the boxes, and deterministic: the same log gives the same figures.
 */
import type { AnswerLog, LearnerFilter } from '../answer-log.js';
import { predictionModel } from '../params.js';
import { features } from './features.js';
import { type FitData, gatherData } from './fit-data.js';
import { addTerms, type Groups, inOrder, newGroups, stepGroup } from './fit-groups.js';
import { addWeights, startWeights, stepWeights, type Weights } from './fit-weights.js';
import { itemTermCount, type PredictionModel, skillTermCount } from './model.js';
import type { FeatureStore } from './replay.js';

/** What a fit publishes, beside the counters of items (see `countItems`). */
export interface FittedPrediction {
  readonly model: PredictionModel;
  /** `skillTermCount` terms for each skill. */
  readonly skillTerms: Float32Array;
  /** `itemTermCount` terms for each item index, from 0, which is none. */
  readonly itemTerms: Float32Array;
}

/**
 * Block Newton from the start values: in turns the shared weights, then one group of terms after the other.
 *
 * @param learners whose answers are fitted; the store must hold the features of all of these
 */
export function fitPrediction(
  log: AnswerLog,
  learners: LearnerFilter,
  store: FeatureStore,
): FittedPrediction {
  const data = gatherData(log, learners, store);
  const { sweeps, groupSteps, minAnswers } = predictionModel.fit;
  const start = startWeights(data);
  const weights = start.slice();
  const groups = newGroups(data, log.skills, log.items);
  const frozen = data.places.length < minAnswers;
  for (let sweep = 0; sweep < sweeps; sweep++) {
    sumUp(data, weights, groups);
    stepWeights(data, weights, start, frozen);
    sumUp(data, weights, groups);
    for (let step = 0; step < groupSteps; step++) {
      for (const group of inOrder(groups)) stepGroup(data, group, weights);
    }
  }
  return {
    model: modelOf(data, weights, groups),
    skillTerms: skillTermsOf(data, groups, log.skills),
    itemTerms: itemTermsOf(data, groups, log.items),
  };
}

/** The log-odds of every answer by all terms. */
function sumUp(data: FitData, weights: Weights, groups: Groups): void {
  data.logits.fill(0);
  addWeights(data, weights);
  for (const group of inOrder(groups)) addTerms(data, group, group.terms);
}

/** From standardised units to those of the features. */
function modelOf({ means, scales }: FitData, weights: Weights, { runs }: Groups): PredictionModel {
  return {
    bias: weights[0] as number,
    weights: features.map((_, column) => (weights[column + 1] as number) * (scales[column] as number)),
    means: [...means],
    runs: [...runs.terms.subarray(1)],
  };
}

function skillTermsOf({ scales }: FitData, groups: Groups, skills: number): Float32Array {
  const result = new Float32Array(skills * skillTermCount);
  for (let skill = 0; skill < skills; skill++) {
    const at = skill * skillTermCount;
    result[at] = groups.skillIntercepts.terms[skill] as number;
    for (const [i, { terms, column }] of groups.skillSlopes.entries()) {
      result[at + 1 + i] = (terms[skill] as number) * (scales[column as number] as number);
    }
  }
  return result;
}

function itemTermsOf({ scales }: FitData, groups: Groups, items: number): Float32Array {
  const result = new Float32Array((items + 1) * itemTermCount);
  for (let item = 1; item <= items; item++) {
    for (const [i, { terms, column }] of groups.itemSlopes.entries()) {
      result[item * itemTermCount + i] = (terms[item] as number) * (scales[column as number] as number);
    }
  }
  return result;
}
