import {
  type AnswerLog,
  countSkillSets,
  iterateLearnerRanges,
  listSkillSets,
  selectAllLearners,
} from '../../domain/base/answer-log.js';
import type { BktParameters } from '../../domain/base/bkt-parameters.js';
import { mapNonEmpty, type NonEmpty } from '../../domain/base/common.js';
import { isMastered } from '../../domain/learner/expected-accuracy.js';
import { buildSkillView } from '../../domain/learner/skill-view.js';
import { averageChance, predictSkills, traceQuestion } from '../../domain/tracing/bkt.js';
import type { Split } from './answers.js';
import { replayLog, type ServedModel } from './replay.js';
import type { ServedAnswer } from './validity.js';

export type Visit = Parameters<typeof replayLog>[2];
export type Predictions = ReturnType<typeof predictAll>['predictions'];

/**
 * Uses only the models and the learner's earlier answers.
 * @param bkt parameters by skill
 * @param visit called before each test answer changes the history
 */
export function predictAll(
  { training, test }: Split,
  { bkt, served }: { readonly bkt: readonly BktParameters[]; readonly served: ServedModel },
  visit: Visit = () => undefined,
) {
  const [predicted, mastery] = [new Float64Array(test.correct.length), new Float64Array(test.correct.length)];
  replayLog(served, test, (moment, effect) => {
    predicted[moment.place] = moment.conditions.pCorrect;
    mastery[moment.place] = averageMastery(effect.masteriesBefore);
    visit(moment, effect);
  });
  const overall = computeShareRight(training);
  return {
    predictions: {
      overall_mean: new Float64Array(test.correct.length).fill(overall),
      skill_mean: predictSkillMean(training, test, overall),
      bkt: predictBkt(test, bkt),
      served: predicted,
    },
    /** Before each answer. */
    mastery,
  };
}

/** Geometric mean, as the served probability averages several skills. */
function averageMastery(masteries: readonly number[]): number {
  const product = masteries.reduce((product, mastery) => product * mastery);
  return averageChance(product, masteries.length);
}

export const computeShareRight = ({ correct }: AnswerLog): number =>
  correct.reduce((sum, value) => sum + value, 0) / correct.length;

/**
 * @param keys 0 to size - 1
 * @param values default: 1 each
 */
export function sumByKey(keys: Uint32Array, size: number, values?: ArrayLike<number>): Float64Array {
  const sums = new Float64Array(size);
  for (const [i, key] of keys.entries())
    sums[key] = (sums[key] as number) + (values === undefined ? 1 : (values[i] as number));
  return sums;
}

/** By skill set. Those without training answers get the overall share. */
function predictSkillMean(training: AnswerLog, test: AnswerLog, overall: number): Float64Array {
  const answers = sumByKey(training.skill, countSkillSets(training));
  const right = sumByKey(training.skill, countSkillSets(training), training.correct);
  return Float64Array.from(test.skill, (skill) =>
    answers[skill] === 0 ? overall : (right[skill] as number) / (answers[skill] as number),
  );
}

/** Plain BKT: no difficulty, no forgetting, no other skills. */
function predictBkt(test: AnswerLog, parameters: readonly BktParameters[]): Float64Array {
  const predictions = new Float64Array(test.correct.length);
  const sets = listSkillSets(test);
  for (const { start, end } of iterateLearnerRanges(test, selectAllLearners(test))) {
    const mastery = parameters.map(({ pInit }) => pInit);
    for (let i = start; i < end; i++) {
      const set = sets[test.skill[i] as number] as NonEmpty<number>;
      const asked = mapNonEmpty(set, (skill) => ({
        parameters: parameters[skill] as BktParameters,
        mastery: mastery[skill] as number,
      }));
      const traced = traceQuestion(asked, test.correct[i] === 1);
      predictions[i] = predictSkills(asked, 0);
      for (const [k, { masteryAfter }] of traced.entries()) mastery[set[k] as number] = masteryAfter;
    }
  }
  return predictions;
}

/** `visit` adds to `answers`. */
export function collectAnswers({ model }: ServedModel) {
  const answers: ServedAnswer[] = [];
  const visit: Visit = (moment, { masteriesBefore, skills, learner }) => {
    const { history, answer, conditions, skillIds } = moment;
    const now = answer.occurredAt;
    answers.push({
      learner: history,
      right: answer.isCorrect ? 1 : 0,
      predicted: conditions.pCorrect,
      skills: mapNonEmpty(skills, (skill, i) => {
        const skillId = skillIds[i] as string;
        const view = buildSkillView(skillId, skill, model, now);
        return {
          skill: skillId,
          masteryBefore: masteriesBefore[i] as number,
          masteryAfter: skill.mastery,
          isMastered: isMastered(view, { learner, model, now }),
        };
      }),
    });
  };
  return { answers, visit };
}
