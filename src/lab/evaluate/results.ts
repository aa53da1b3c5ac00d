/** What an evaluation finds, as it is printed and drawn. */
import type { AnswerLog } from '../../domain/base/answer-log.js';
import { type Metrics, measure, type ReliabilityBin, reliabilityOf } from '../../domain/base/metrics.js';
import { type AucEstimate, estimateAuc } from './auc.js';
import { answersByLearner, attemptsOnSkill, type CurvePoint } from './curves.js';
import type { Split } from './split.js';

export const modelNames = ['overall_mean', 'skill_mean', 'bkt', 'served'] as const;
export type ModelName = (typeof modelNames)[number];

/** Probability of a right answer for every answer of the test log, by model. */
export type Predictions = Readonly<Record<ModelName, Float64Array>>;

export interface ModelResult {
  readonly name: ModelName;
  readonly metrics: Metrics;
  readonly auc: AucEstimate;
  readonly reliability: readonly ReliabilityBin[];
}

/** Test answers on skills of about the same number of training answers. */
export interface SizeBand {
  /** Least and greatest number of training answers on the skill. */
  readonly from: number;
  readonly to: number;
  readonly skills: number;
  readonly answers: number;
  /** Area under the ROC curve, in the order of `modelNames`. */
  readonly auc: readonly AucEstimate[];
}

/** One skill as the served model predicts it. */
export interface SkillCalibration {
  readonly skill: number;
  readonly answers: number;
  readonly predicted: number;
  readonly correct: number;
}

export interface Results {
  readonly models: readonly ModelResult[];
  /** By the number of the attempt on the skill, and by the number of the answer among all of the learner. */
  readonly byAttempt: readonly CurvePoint[];
  readonly byAnswer: readonly CurvePoint[];
  readonly bySize: readonly SizeBand[];
  /** The skills with the widest gap first. */
  readonly worstSkills: readonly SkillCalibration[];
}

export function resultsOf(split: Split, predictions: Predictions): Results {
  const { correct } = split.test;
  const learner = learnersOf(split.test);
  const inOrder = modelNames.map((name) => predictions[name]);
  return {
    models: modelNames.map((name) => ({
      name,
      metrics: measure(correct, predictions[name]),
      auc: estimateAuc(correct, predictions[name], learner),
      reliability: reliabilityOf(correct, predictions[name]),
    })),
    byAttempt: attemptsOnSkill(split.test, inOrder),
    byAnswer: answersByLearner(split.test, inOrder),
    bySize: bandsOf(split, inOrder, learner),
    worstSkills: worstOf(split.test, predictions.served),
  };
}

/** Least numbers of training answers of the bands. */
const bandStarts = [0, 1, 100, 1000, 10_000];

/** The learner of each answer. */
function learnersOf({ starts, correct }: AnswerLog): Uint32Array {
  const learner = new Uint32Array(correct.length);
  for (let l = 0; l + 1 < starts.length; l++) learner.fill(l, starts[l], starts[l + 1]);
  return learner;
}

function bandsOf(
  { training, test }: Split,
  predictions: readonly Float64Array[],
  learner: Uint32Array,
): SizeBand[] {
  const sizes = countBySkill(training);
  const seen = countBySkill(test);
  return bandStarts.flatMap((from, i) => {
    const to = (bandStarts[i + 1] ?? Number.POSITIVE_INFINITY) - 1;
    const has = (skill: number): boolean =>
      (sizes[skill] as number) >= from && (sizes[skill] as number) <= to;
    const skills = seen.filter((answers, skill) => answers > 0 && has(skill)).length;
    if (skills === 0) return [];
    const inBand = (_: number, place: number): boolean => has(test.skill[place] as number);
    const correct = test.correct.filter(inBand);
    const own = learner.filter(inBand);
    const auc = predictions.map((column) => estimateAuc(correct, column.filter(inBand), own));
    return [{ from, to, skills, answers: correct.length, auc }];
  });
}

function countBySkill({ skill, skills }: AnswerLog): Uint32Array {
  const counts = new Uint32Array(skills);
  for (const index of skill) counts[index] = (counts[index] as number) + 1;
  return counts;
}

const shownSkills = 10;
/** Below this the gap is mostly chance: its standard error is about .05. */
const minAnswers = 100;

function worstOf(test: AnswerLog, served: Float64Array): SkillCalibration[] {
  const answers = countBySkill(test);
  const predicted = new Float64Array(test.skills);
  const right = new Float64Array(test.skills);
  test.skill.forEach((skill, i) => {
    predicted[skill] = (predicted[skill] as number) + (served[i] as number);
    right[skill] = (right[skill] as number) + (test.correct[i] as number);
  });
  const gap = ({ predicted, correct }: SkillCalibration): number => Math.abs(predicted - correct);
  return Array.from(answers, (count, skill) => ({
    skill,
    answers: count,
    predicted: (predicted[skill] as number) / count,
    correct: (right[skill] as number) / count,
  }))
    .filter((row) => row.answers >= minAnswers)
    .sort((a, b) => gap(b) - gap(a) || a.skill - b.skill)
    .slice(0, shownSkills);
}
