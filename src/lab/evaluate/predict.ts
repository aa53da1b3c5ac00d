/** Predictions of all models for the test learners, from the training log and earlier answers only. */
import type { AnswerLog } from '../../domain/base/answer-log.js';
import type { BktParameters } from '../../domain/base/params.js';
import { traceAnswer } from '../../domain/tracing/bkt.js';
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

/** The share of right answers in the training log, for every answer. */
function predictOverallMean(training: AnswerLog, test: AnswerLog): Float64Array {
  return new Float64Array(test.correct.length).fill(shareRight(training));
}

const shareRight = ({ correct }: AnswerLog): number =>
  correct.reduce((sum, value) => sum + value, 0) / correct.length;

/** The share of right answers on the skill; the overall share for a skill that training did not see. */
function predictSkillMean(training: AnswerLog, test: AnswerLog): Float64Array {
  const answers = new Float64Array(training.skills);
  const right = new Float64Array(training.skills);
  training.skill.forEach((skill, i) => {
    answers[skill] = (answers[skill] as number) + 1;
    right[skill] = (right[skill] as number) + (training.correct[i] as number);
  });
  const overall = shareRight(training);
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
  const initial = Float64Array.from(parameters, ({ pInit }) => pInit);
  const mastery = new Float64Array(test.skills);
  for (let learner = 0; learner + 1 < test.starts.length; learner++) {
    mastery.set(initial);
    const end = test.starts[learner + 1] as number;
    for (let i = test.starts[learner] as number; i < end; i++) {
      const skill = test.skill[i] as number;
      const step = traceAnswer(
        parameters[skill] as BktParameters,
        mastery[skill] as number,
        test.correct[i] === 1,
      );
      predictions[i] = step.pCorrect;
      mastery[skill] = step.masteryAfter;
    }
  }
  return predictions;
}
