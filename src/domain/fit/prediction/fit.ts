/**
 * Fits the served probability to a log whose features were replayed: weights that all share, and terms of skills,
 * items and runs. Convex but for the boxes, and deterministic: the same log gives the same figures, in any number of
 * threads.
 */
import { predictionModel } from '../../base/params.js';
import { priorAnswersFor } from '../../prediction/items.js';
import { itemTermCount, type PredictionModel } from '../../prediction/model.js';
import type { BlockName, FitMemory, FitStep } from './fit-blocks.js';

/** What a fit publishes, beside the counters of items (see `countItems`). */
export interface FittedPrediction {
  readonly model: PredictionModel;
  /** `skillTermCount` terms for each skill. */
  readonly skillTerms: Float32Array;
  /** `itemTermCount` terms for each item index, from 0, which is none. */
  readonly itemTerms: Float32Array;
}

/**
 * The steps in their order, a block Newton from the start values. `moveRanges` of the weights, which
 * start somewhere, comes before them; each step is `sumRanges` over all ranges, `solveStep`, then `moveRanges`. Hessians
 * hardly change after a few sweeps and take most of the time: later steps use the last ones.
 */
export function fitSteps(): FitStep[] {
  const { sweeps, freshSweeps } = predictionModel.fit;
  const names: BlockName[] = ['weights', 'skills', 'items', 'runs'];
  return Array.from({ length: sweeps }, (_, sweep) =>
    names.map((name) => ({ name, fresh: sweep < freshSweeps })),
  ).flat();
}

/** What the steps have led to. */
export function fittedPrediction({ blocks }: FitMemory, itemVariance: number): FittedPrediction {
  const { weights, skills, items, runs } = blocks;
  const itemTerms = new Float32Array((items.starts.length - 1) * itemTermCount);
  for (let at = 0; at < itemTerms.length; at++) {
    const item = Math.floor(at / itemTermCount);
    itemTerms[at] = items.terms[at + item + 1] as number;
  }
  return {
    model: {
      bias: weights.terms[0] as number,
      weights: [...weights.terms.subarray(1)],
      means: [...weights.means.subarray(1)],
      runs: [...runs.terms.subarray(1)],
      itemPriorAnswers: priorAnswersFor(itemVariance),
    },
    skillTerms: Float32Array.from(skills.terms),
    itemTerms,
  };
}
