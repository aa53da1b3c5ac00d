/** Predictions of all models for the test learners, from the training log and earlier answers only. */
import { type AnswerLog, everyone, placesByLearner } from '../../domain/base/answer-log.js';
import type { BktParameters } from '../../domain/base/params.js';
import { traceAnswer } from '../../domain/tracing/bkt.js';
import { predictServed } from './served.js';
import type { Split } from './split.js';
import type { TrainedModels } from './train.js';

/** Probability of a right answer for every answer of the test log, by model. */
export type Predictions = ReturnType<typeof predictAll>['predictions'];

/** Every answer of the test log from the models and the learner's answers before it, and from nothing else. */
export function predictAll({ training, test }: Split, { bkt, served }: TrainedModels) {
  const { predictions, monotone } = predictServed(served, test);
  const overall = shareRight(training);
  return {
    predictions: {
      overall_mean: new Float64Array(test.correct.length).fill(overall),
      skill_mean: predictSkillMean(training, test, overall),
      bkt: predictBkt(test, bkt),
      served: predictions,
    },
    monotone,
  };
}

export const shareRight = ({ correct }: AnswerLog): number =>
  correct.reduce((sum, value) => sum + value, 0) / correct.length;

/**
 * Sums by key.
 *
 * @param keys from 0 to below `size`
 * @param values of each; without them keys are counted
 */
export function sumBy(keys: Uint32Array, size: number, values?: ArrayLike<number>): Float64Array {
  const sums = new Float64Array(size);
  for (const [i, key] of keys.entries())
    sums[key] = (sums[key] as number) + (values === undefined ? 1 : (values[i] as number));
  return sums;
}

/** The share of right answers on the skill; the overall share for a skill that training did not see. */
function predictSkillMean(training: AnswerLog, test: AnswerLog, overall: number): Float64Array {
  const answers = sumBy(training.skill, training.skills);
  const right = sumBy(training.skill, training.skills, training.correct);
  const means = right.map((sum, skill) =>
    answers[skill] === 0 ? overall : sum / (answers[skill] as number),
  );
  return Float64Array.from(test.skill, (skill) => means[skill] as number);
}

/**
 * Plain Bayesian Knowledge Tracing: each learner starts at the skill's initial mastery and is traced answer by
 * answer, without difficulty, forgetting or anything of other skills.
 *
 * @param parameters by skill
 */
function predictBkt(test: AnswerLog, parameters: readonly BktParameters[]): Float64Array {
  const predictions = new Float64Array(test.correct.length);
  for (const { start, end } of placesByLearner(test, everyone(test))) {
    const mastery = parameters.map(({ pInit }) => pInit);
    for (let i = start; i < end; i++) {
      const skill = test.skill[i] as number;
      const own = parameters[skill] as BktParameters;
      const step = traceAnswer(own, mastery[skill] as number, test.correct[i] === 1);
      predictions[i] = step.pCorrect;
      mastery[skill] = step.masteryAfter;
    }
  }
  return predictions;
}
