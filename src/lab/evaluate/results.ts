import {
  type AnswerLog,
  countSkillSets,
  iterateLearnerRanges,
  selectAllLearners,
} from '../../domain/base/answer-log.js';
import { computeReliability, measurePredictions } from '../../domain/base/prediction-metrics.js';
import { indices } from '../../lists.js';
import type { Split } from './answers.js';
import { estimateAuc } from './auc.js';
import { estimateIntervals } from './bootstrap.js';
import { type Predictions, sumByKey } from './predict.js';

export const modelNames = ['overall_mean', 'skill_mean', 'bkt', 'served'] as const;
export type ModelName = (typeof modelNames)[number];
export const metricNames = ['auc', 'rmse', 'logLoss', 'accuracy', 'ece'] as const;
/** Null or NaN: not defined. */
export type Metrics = Readonly<Record<(typeof metricNames)[number], number | null>>;
export type EvaluationResults = Awaited<ReturnType<typeof computeResults>>;
export type ModelResult = EvaluationResults['models'][number];
export type AucEstimate = ModelResult['auc'];
export type CurvePoint = EvaluationResults['byAttempt'][number];
export type SizeBand = EvaluationResults['bySize'][number];

export async function computeResults(split: Split, predictions: Predictions) {
  const { test } = split;
  const { learner, answer, attempt } = numberAnswers(test);
  const inOrder = modelNames.map((name) => predictions[name]);
  const intervals = await estimateIntervals(test.correct, inOrder, learner);
  return {
    models: modelNames.map((name, i) => ({
      ...{ name, intervals: intervals[i] as (typeof intervals)[0] },
      ...measureModel(test.correct, predictions[name], learner),
      reliability: computeReliability(test.correct, predictions[name]),
    })),
    severalSkills: measureSeveralSkills(test, predictions.served, learner),
    byAttempt: computeCurve(test, inOrder, attempt, attemptEnds),
    byAnswer: computeCurve(test, inOrder, answer, answerEnds),
    bySize: computeSizeBands(split, inOrder, learner),
  };
}

function measureModel(correct: Uint8Array, predictions: Float64Array, learner: Uint32Array) {
  const auc = estimateAuc(correct, predictions, learner);
  return { metrics: { auc: auc.auc, ...measurePredictions(correct, predictions) }, auc };
}

export const measureMetrics = (correct: Uint8Array, predictions: Float64Array) =>
  measureModel(correct, predictions, new Uint32Array(correct.length)).metrics;

/** The served model on questions with several skills; null without such answers. */
function measureSeveralSkills(log: AnswerLog, served: Float64Array, learner: Uint32Array) {
  const { skill, skills, correct } = log;
  const hasSeveral = (_: number, place: number): boolean => (skill[place] as number) >= skills;
  const own = correct.filter(hasSeveral);
  if (own.length === 0) return null;
  return { answers: own.length, ...measureModel(own, served.filter(hasSeveral), learner.filter(hasSeveral)) };
}

/**
 * For each answer: the learner, and the number (from 1) of the learner's answer, in total and on the skill.
 */
function numberAnswers(log: AnswerLog) {
  const [learner, answer, attempt] = [log.skill.slice(), log.skill.slice(), log.skill.slice()];
  for (const { learner: own, start, end } of iterateLearnerRanges(log, selectAllLearners(log))) {
    const attempts = new Map<number, number>();
    for (let place = start; place < end; place++) {
      const skill = log.skill[place] as number;
      const number = 1 + (attempts.get(skill) ?? 0);
      attempts.set(skill, number);
      learner[place] = own;
      answer[place] = place - start + 1;
      attempt[place] = number;
    }
  }
  return { learner, answer, attempt };
}

const attemptEnds = indices(30).map((i) => i + 1);

/** Rounded powers of the square root of two: 1, 2, 3, 4, 6, 8, 11, 16 up to 65,536. */
const answerEnds = [...new Set(indices(33).map((i) => Math.round(2 ** (i / 2))))];

/** Relative to the largest point; smaller ones are noise. */
const minPointShare = 0.005;

/** @param ends last number of each point, ascending; later answers are excluded */
function computeCurve(
  { correct }: AnswerLog,
  predictions: readonly Float64Array[],
  numbers: Uint32Array,
  ends: readonly number[],
) {
  const points = ends.length + 1;
  const pointIndexes = numbers.map((number) => ends.filter((end) => end < number).length);
  const answers = sumByKey(pointIndexes, points).subarray(0, ends.length);
  const means = (column: ArrayLike<number>): Float64Array =>
    sumByKey(pointIndexes, points, column).map((sum, i) => sum / (answers[i] as number));
  const right = means(correct);
  const predicted = predictions.map(means);
  const minAnswers = Math.max(1, minPointShare * Math.max(...answers));
  return ends
    .map((to, i) => ({
      from: (ends[i - 1] ?? 0) + 1,
      to,
      answers: answers[i] as number,
      correct: right[i] as number,
      predicted: predicted.map((column) => column[i] as number),
    }))
    .filter((point) => point.answers >= minAnswers);
}

const sizeBandStarts = [0, 1, 100, 1000, 10_000];

/** Groups test answers by training answers of the skill; `auc` in the order of `modelNames`. */
function computeSizeBands(split: Split, predictions: readonly Float64Array[], learner: Uint32Array) {
  const { training, test } = split;
  const sizes = sumByKey(training.skill, countSkillSets(training));
  return sizeBandStarts.flatMap((from, i) => {
    const to = (sizeBandStarts[i + 1] ?? Number.POSITIVE_INFINITY) - 1;
    const inBand = (_: number, place: number): boolean => {
      const size = sizes[test.skill[place] as number] as number;
      return size >= from && size <= to;
    };
    const skills = new Set(test.skill.filter(inBand)).size;
    if (skills === 0) return [];
    const correct = test.correct.filter(inBand);
    const own = learner.filter(inBand);
    const auc = predictions.map((column) => estimateAuc(correct, column.filter(inBand), own));
    return [{ from, to, skills, answers: correct.length, auc }];
  });
}
