/** Predictions of all models for the test learners. */
import type { BktParameters } from '../../domain/base/params.js';
import { predictBkt, predictOverallMean, predictSkillMean } from './baselines.js';
import type { Predictions } from './results.js';
import { type MonotoneCheck, predictServed, type ServedModel } from './served.js';
import type { Split } from './split.js';

/** What was learned from the training log; it changes no more. */
export interface TrainedModels {
  /** Parameters of plain BKT by skill. */
  readonly bkt: readonly BktParameters[];
  readonly served: ServedModel;
}

export interface AllPredictions {
  readonly predictions: Predictions;
  readonly monotone: MonotoneCheck;
}

/** Every answer of the test log from the models and the learner's answers before it, and from nothing else. */
export function predictAll({ training, test }: Split, { bkt, served }: TrainedModels): AllPredictions {
  const { predictions, monotone } = predictServed(served, test);
  return {
    predictions: {
      overall_mean: predictOverallMean(training, test),
      skill_mean: predictSkillMean(training, test),
      bkt: predictBkt(test, bkt),
      served: predictions,
    },
    monotone,
  };
}
