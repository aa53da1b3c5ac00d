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
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  readonly isMastered: boolean;
}

export type AnswerChecks = ReturnType<typeof checkAnswers>;
type ServedAnswers = readonly ServedAnswer[];

/** @param all each learner's answers in order */
export function checkAnswers(all: ServedAnswers) {
  const learners = [...groupBy(all, ({ learner }) => learner).values()];
  return { validity: measureValidity(learners), movers: measureMoverBias(learners) };
}

/** Number of an answer. Before it, mastery still depends on the prior. */
const firstSettledAnswer = 6;

function measureValidity(learners: readonly ServedAnswers[]) {
  const pairsOf = (own: ServedAnswers): ServedAnswers[] => [...groupBy(own, ({ skill }) => skill).values()];
  const pairs = learners.flatMap(pairsOf);
  const longPairs = pairs.filter((pair) => pair.length >= 10);
  const settled = pairs.flatMap((pair) => pair.slice(firstSettledAnswer - 1));
  const unmastered = pairs.flatMap((pair) => pair.slice(firstSettledAnswer - 1, countAnswersToMastery(pair)));
  const all = learners.flat();
  return {
    pairs: longPairs.length,
    contradictions: longPairs.filter(isContradicted).length,
    masteredAt60: longPairs.filter((pair) => pair.at(-1)?.isMastered && countRight(pair.slice(-10)) <= 6)
      .length,
    jumps: settled.filter(({ masteryBefore, masteryAfter }) => Math.abs(masteryAfter - masteryBefore) > 0.5)
      .length,
    settledAnswers: settled.length,
    ...measureAfterMastery(learners.map((own) => pairsOf(own).flatMap(selectNextFive))),
    unmasteredThenAccuracy: computeMean(unmastered.map(({ right }) => right)),
    /** Bins by mastery before the answer; `predicted` is its mean. */
    byMastery: computeReliability(
      Uint8Array.from(all, ({ right }) => right),
      Float64Array.from(all, ({ masteryBefore }) => masteryBefore),
      10,
    ),
  };
}

const countRight = (answers: ServedAnswers): number => computeSum(answers.map(({ right }) => right));

const computeMean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : computeSum(values) / values.length;

function isContradicted(pair: ServedAnswers): boolean {
  const mastery = pair.at(-1)?.masteryAfter ?? 0;
  const ofTen = countRight(pair.slice(-10));
  return mastery >= 0.7 ? ofTen <= 4 && countRight(pair.slice(-4)) <= 2 : mastery < 0.6 && ofTen >= 9;
}

/** All answers if none reaches mastery. */
function countAnswersToMastery(pair: ServedAnswers): number {
  const reached = pair.findIndex(({ masteryAfter }) => masteryAfter >= masteryThresholds.mastery);
  return reached < 0 ? pair.length : reached + 1;
}

function selectNextFive(pair: ServedAnswers): ServedAnswers {
  const first = countAnswersToMastery(pair);
  return pair.slice(first, first + 5);
}

/** Share right with a 95 % interval over learners (ratio estimate). */
function measureAfterMastery(answersOf: readonly ServedAnswers[]) {
  const learners = answersOf.filter(({ length }) => length > 0);
  const answers = learners.flat();
  const share = computeMean(answers.map(({ right }) => right));
  const squares = learners.map((own) => (countRight(own) - own.length * (share ?? 0)) ** 2);
  const variance = (computeSum(squares) * learners.length) / (learners.length - 1);
  const margin = (1.96 * Math.sqrt(variance)) / answers.length;
  const bound = (side: number): number | null =>
    share === null || learners.length < 2 ? null : clamp(share + side * margin, 0, 1);
  return {
    ...{ masteredThenAccuracy: share, masteredThenLow: bound(-1), masteredThenHigh: bound(1) },
    masteredThenAnswers: answers.length,
  };
}

const edgeAnswers = 50;

/**
 * Mean prediction minus share right over the last 50 answers, if the share right rose or fell by .2 or more.
 */
function measureMoverBias(all: readonly ServedAnswers[]) {
  const learners = all
    .filter(({ length }) => length >= 2 * edgeAnswers)
    .map((own) => {
      const last = own.slice(-edgeAnswers);
      const bias = (computeSum(last.map(({ predicted }) => predicted)) - countRight(last)) / edgeAnswers;
      return { answers: own.length, bias, rise: countRight(last) - countRight(own.slice(0, edgeAnswers)) };
    });
  const rising = learners.filter(({ rise }) => rise >= 0.2 * edgeAnswers);
  const falling = learners.filter(({ rise }) => -rise >= 0.2 * edgeAnswers);
  const long = learners.filter(({ answers }) => answers >= 3 * edgeAnswers);
  const meanSquare = computeMean(long.map(({ bias }) => bias ** 2));
  return {
    ...{ learners: learners.length, rising: rising.length, falling: falling.length },
    biasRising: computeMean(rising.map(({ bias }) => bias)),
    biasFalling: computeMean(falling.map(({ bias }) => bias)),
    ...{ longLearners: long.length, longRms: meanSquare === null ? null : Math.sqrt(meanSquare) },
  };
}
