import { masteryThresholds } from '../../domain/base/bkt-parameters.js';
import { clamp } from '../../domain/base/common.js';
import { computeReliability } from '../../domain/base/prediction-metrics.js';
import { computeSum, groupBy } from '../../lists.js';

export interface ServedAnswer {
  /** Identifies the learner. */
  readonly learner: unknown;
  readonly skill: number;
  /** 1 or 0. */
  readonly right: number;
  readonly predicted: number;
  readonly before: number;
  readonly after: number;
  readonly isMastered: boolean;
}

export type AnswerChecks = ReturnType<typeof checkAnswers>;
type Answers = readonly ServedAnswer[];

/** @param all each learner's answers in order */
export function checkAnswers(all: Answers) {
  const learners = [...groupBy(all, ({ learner }) => learner).values()];
  return { validity: validityOf(learners), movers: moverBias(learners) };
}

/** Number of an answer. Before it, mastery still depends on the prior. */
const settledFrom = 6;

function validityOf(learners: readonly Answers[]) {
  const pairsOf = (own: Answers): Answers[] => [...groupBy(own, ({ skill }) => skill).values()];
  const pairs = learners.flatMap(pairsOf);
  const ended = pairs.filter((pair) => pair.length >= 10);
  const settled = pairs.flatMap((pair) => pair.slice(settledFrom - 1));
  const unmastered = pairs.flatMap((pair) => pair.slice(settledFrom - 1, answersToMastery(pair)));
  const all = learners.flat();
  return {
    pairs: ended.length,
    contradictions: ended.filter(contradicts).length,
    masteredAt60: ended.filter((pair) => pair.at(-1)?.isMastered && rightIn(pair.slice(-10)) <= 6).length,
    jumps: settled.filter(({ before, after }) => Math.abs(after - before) > 0.5).length,
    settledAnswers: settled.length,
    ...masteredThen(learners.map((own) => pairsOf(own).flatMap(nextFive))),
    unmasteredThenAccuracy: meanOf(unmastered.map(({ right }) => right)),
    /** Bins by mastery before the answer; `predicted` is its mean. */
    byMastery: computeReliability(
      Uint8Array.from(all, ({ right }) => right),
      Float64Array.from(all, ({ before }) => before),
      10,
    ),
  };
}

const rightIn = (answers: Answers): number => computeSum(answers.map(({ right }) => right));

const meanOf = (values: readonly number[]): number | null =>
  values.length === 0 ? null : computeSum(values) / values.length;

function contradicts(pair: Answers): boolean {
  const mastery = pair.at(-1)?.after ?? 0;
  const ofTen = rightIn(pair.slice(-10));
  return mastery >= 0.7 ? ofTen <= 4 && rightIn(pair.slice(-4)) <= 2 : mastery < 0.6 && ofTen >= 9;
}

/** All answers if none reaches mastery. */
function answersToMastery(pair: Answers): number {
  const reached = pair.findIndex(({ after }) => after >= masteryThresholds.mastery);
  return reached < 0 ? pair.length : reached + 1;
}

function nextFive(pair: Answers): Answers {
  const first = answersToMastery(pair);
  return pair.slice(first, first + 5);
}

/** Share right with a 95 % interval over learners (ratio estimate). */
function masteredThen(answersOf: readonly Answers[]) {
  const learners = answersOf.filter(({ length }) => length > 0);
  const answers = learners.flat();
  const share = meanOf(answers.map(({ right }) => right));
  const squares = learners.map((own) => (rightIn(own) - own.length * (share ?? 0)) ** 2);
  const variance = (computeSum(squares) * learners.length) / (learners.length - 1);
  const margin = (1.96 * Math.sqrt(variance)) / answers.length;
  const bound = (side: number): number | null =>
    share === null || learners.length < 2 ? null : clamp(share + side * margin, 0, 1);
  return {
    ...{ masteredThenAccuracy: share, masteredThenLow: bound(-1), masteredThenHigh: bound(1) },
    masteredThenAnswers: answers.length,
  };
}

const edge = 50;

/**
 * Mean prediction minus share right over the last 50 answers, if the share right rose or fell by .2 or more.
 */
function moverBias(all: readonly Answers[]) {
  const learners = all
    .filter(({ length }) => length >= 2 * edge)
    .map((own) => {
      const last = own.slice(-edge);
      const bias = (computeSum(last.map(({ predicted }) => predicted)) - rightIn(last)) / edge;
      return { answers: own.length, bias, rise: rightIn(last) - rightIn(own.slice(0, edge)) };
    });
  const rising = learners.filter(({ rise }) => rise >= 0.2 * edge);
  const falling = learners.filter(({ rise }) => -rise >= 0.2 * edge);
  const long = learners.filter(({ answers }) => answers >= 3 * edge);
  const meanSquare = meanOf(long.map(({ bias }) => bias ** 2));
  return {
    ...{ learners: learners.length, rising: rising.length, falling: falling.length },
    biasRising: meanOf(rising.map(({ bias }) => bias)),
    biasFalling: meanOf(falling.map(({ bias }) => bias)),
    ...{ longLearners: long.length, longRms: meanSquare === null ? null : Math.sqrt(meanSquare) },
  };
}
