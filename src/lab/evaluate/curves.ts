/** Learning curves: how right answers and predictions change with practice. */
import type { AnswerLog } from '../../domain/base/answer-log.js';

/** Answers whose number, counted from 1, lies from `from` to `to`. */
export interface CurvePoint {
  readonly from: number;
  readonly to: number;
  readonly answers: number;
  readonly correct: number;
  /** Mean prediction of each model, in the order in which they were given. */
  readonly predicted: readonly number[];
}

/** Attempts on a skill that have a point of their own; later ones are few. */
const maxAttempts = 30;

/** By the number of the learner's attempt on the skill. */
export function attemptsOnSkill(log: AnswerLog, predictions: readonly Float64Array[]): CurvePoint[] {
  const ends = Array.from({ length: maxAttempts }, (_, i) => i + 1);
  const attempts = new Uint32Array(log.skills);
  return curve(log, predictions, ends, (place, isFirst) => {
    if (isFirst) attempts.fill(0);
    const skill = log.skill[place] as number;
    const attempt = (attempts[skill] as number) + 1;
    attempts[skill] = attempt;
    return attempt;
  });
}

/** By the number of the answer among all of the learner; points are equally far apart in ratio. */
export function answersByLearner(log: AnswerLog, predictions: readonly Float64Array[]): CurvePoint[] {
  let answer = 0;
  return curve(log, predictions, ratioEnds, (_, isFirst) => {
    answer = isFirst ? 1 : answer + 1;
    return answer;
  });
}

/** 1, 2, 3, 4, 6, 8, 11, 16 and so on to 65,536: powers of the square root of two. */
const ratioEnds = [...new Set(Array.from({ length: 33 }, (_, i) => Math.round(2 ** (i / 2))))];

/** A point with fewer answers than this share of the fullest one is left out: it would only show noise. */
const minShare = 0.005;

interface Sums {
  answers: number;
  correct: number;
  readonly predicted: number[];
}

/**
 * @param ends last number of each point, ascending; answers beyond the last are left out
 * @param numberOf the number of the answer at a place; asked for every place in turn
 */
function curve(
  { starts, correct }: AnswerLog,
  predictions: readonly Float64Array[],
  ends: readonly number[],
  numberOf: (place: number, isFirst: boolean) => number,
): CurvePoint[] {
  const points: Sums[] = ends.map(() => ({ answers: 0, correct: 0, predicted: predictions.map(() => 0) }));
  let learner = 0;
  for (let place = 0; place < correct.length; place++) {
    const isFirst = place === starts[learner];
    if (isFirst) learner++;
    const number = numberOf(place, isFirst);
    const point = points[ends.findIndex((end) => number <= end)];
    if (point !== undefined) addAnswer(point, correct[place] as number, predictions, place);
  }
  const minAnswers = minShare * Math.max(...points.map(({ answers }) => answers));
  return points
    .map((point, i) => meansOf(point, (ends[i - 1] ?? 0) + 1, ends[i] as number))
    .filter(({ answers }) => answers > 0 && answers >= minAnswers);
}

function addAnswer(point: Sums, correct: number, predictions: readonly Float64Array[], place: number): void {
  point.answers++;
  point.correct += correct;
  for (const [model, column] of predictions.entries()) {
    point.predicted[model] = (point.predicted[model] as number) + (column[place] as number);
  }
}

const meansOf = ({ answers, correct, predicted }: Sums, from: number, to: number): CurvePoint => ({
  from,
  to,
  answers,
  correct: correct / answers,
  predicted: predicted.map((sum) => sum / answers),
});
