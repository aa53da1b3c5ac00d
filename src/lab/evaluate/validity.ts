import { masteryThresholds } from '../../domain/base/bkt-parameters.js';
import { computeReliability } from '../../domain/base/prediction-metrics.js';
import { computeSum, groupBy } from '../../lists.js';

export interface ServedAnswer {
  /** Identifies the learner. */
  readonly learner: unknown;
  /** 1 or 0. */
  readonly right: number;
  readonly predicted: number;
  readonly skills: readonly SkillChange[];
}

interface SkillChange {
  readonly skill: string;
  readonly masteryBefore: number;
  readonly masteryAfter: number;
  readonly isMastered: boolean;
}

export type AnswerChecks = ReturnType<typeof checkAnswers>;
type ServedAnswers = readonly ServedAnswer[];
type Attempt = SkillChange & Pick<ServedAnswer, 'right'>;
type Attempts = readonly Attempt[];

/** @param all each learner's answers in order */
export function checkAnswers(all: ServedAnswers) {
  const learners = [...groupBy(all, ({ learner }) => learner).values()];
  return { validity: measureValidity(learners), movers: measureMoverBias(learners) };
}

/** Number of an answer. Before it, mastery still depends on the prior. */
const firstSettledAnswer = 6;

function measureValidity(learners: readonly ServedAnswers[]) {
  const attempts = learners.map((own) =>
    own.flatMap(({ right, skills }) => skills.map((change): Attempt => ({ ...change, right }))),
  );
  const all = attempts.flat();
  const pairs = attempts.map((own) => [...groupBy(own, ({ skill }) => skill).values()]);
  /** @param select cases of a pair, 1 or 0 */
  const measure = (select: (pair: Attempts) => readonly number[]) =>
    measureMean(pairs.map((own) => own.flatMap(select)));
  const contradicted = measure((pair) => (isLong(pair) ? [Number(isContradicted(pair))] : []));
  const masteredAt60 = measure((pair) => (isLong(pair) ? [Number(isMasteredAt60(pair))] : []));
  const jumps = measure((pair) => pair.slice(firstSettledAnswer - 1).map(isJump));
  const next = measure(selectNextFive);
  const [low = null, high = null] = boundMean(next, 2) ?? [];
  const unmastered = measure((pair) =>
    pair.slice(firstSettledAnswer - 1, countAnswersToMastery(pair)).map(({ right }) => right),
  );
  return {
    ...{ pairs: contradicted.cases, contradictions: contradicted.sum, masteredAt60: masteredAt60.sum },
    ...{ jumps: jumps.sum, settledAnswers: jumps.cases },
    ...{ masteredThenAccuracy: next.mean, masteredThenAnswers: next.cases },
    masteredThenLow: low === null ? null : Math.max(0, low),
    masteredThenHigh: high === null ? null : Math.min(1, high),
    unmasteredThenAccuracy: unmastered.mean,
    intervals: {
      ...{ contradictions: boundShare(contradicted), masteredAt60: boundShare(masteredAt60) },
      ...{ jumps: boundShare(jumps), unmasteredThenAccuracy: boundShare(unmastered) },
    },
    /** Bins by mastery before the answer; `predicted` is its mean. */
    byMastery: computeReliability(
      Uint8Array.from(all, ({ right }) => right),
      Float64Array.from(all, ({ masteryBefore }) => masteryBefore),
      10,
    ),
  };
}

const isLong = ({ length }: Attempts): boolean => length >= 10;

const isMasteredAt60 = (pair: Attempts): boolean =>
  pair.at(-1)?.isMastered === true && countRight(pair.slice(-10)) <= 6;

const isJump = ({ masteryBefore, masteryAfter }: Attempt): number =>
  Number(Math.abs(masteryAfter - masteryBefore) > 0.5);

const countRight = (answers: readonly Pick<ServedAnswer, 'right'>[]): number =>
  computeSum(answers.map(({ right }) => right));

const computeMean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : computeSum(values) / values.length;

function isContradicted(pair: Attempts): boolean {
  const mastery = pair.at(-1)?.masteryAfter ?? 0;
  const ofTen = countRight(pair.slice(-10));
  return mastery >= 0.7 ? ofTen <= 4 && countRight(pair.slice(-4)) <= 2 : mastery < 0.6 && ofTen >= 9;
}

/** All answers if none reaches mastery. */
function countAnswersToMastery(pair: Attempts): number {
  const reached = pair.findIndex(({ masteryAfter }) => masteryAfter >= masteryThresholds.mastery);
  return reached < 0 ? pair.length : reached + 1;
}

function selectNextFive(pair: Attempts): number[] {
  const first = countAnswersToMastery(pair);
  return pair.slice(first, first + 5).map(({ right }) => right);
}

/** Mean, and its variance over learners (ratio estimate). */
function measureMean(ofLearners: readonly (readonly number[])[]) {
  const groups = ofLearners.filter(({ length }) => length > 0);
  const all = groups.flat();
  const mean = computeMean(all);
  const squares = groups.map((own) => (computeSum(own) - own.length * (mean ?? 0)) ** 2);
  const variance = (computeSum(squares) * groups.length) / (groups.length - 1) / all.length ** 2;
  return { cases: all.length, sum: computeSum(all), mean, variance, learners: groups.length };
}

type Mean = ReturnType<typeof measureMean>;
/** 95 % confidence interval over learners; null for too few. */
export type Interval = readonly [low: number, high: number] | null;

const z = 1.96;

const boundMean = ({ mean, variance, learners }: Mean, minLearners: number): Interval =>
  mean === null || learners < minLearners
    ? null
    : [mean - z * Math.sqrt(variance), mean + z * Math.sqrt(variance)];

/** Wilson's interval, valid for a share of 0; the cases are divided by the design effect of learners (Kish). */
function boundShare({ cases, mean, variance, learners }: Mean): Interval {
  if (mean === null || learners < 2) return null;
  const chance = mean * (1 - mean);
  const effect = chance === 0 ? 1 : Math.max(1, (variance * cases) / chance);
  const weight = (z ** 2 * effect) / cases;
  const margin = Math.sqrt(weight * (chance + weight / 4));
  return [(mean + weight / 2 - margin) / (1 + weight), (mean + weight / 2 + margin) / (1 + weight)];
}

const edgeAnswers = 50;
/** For fewer learners, an interval from their variance is too narrow. */
const minMovers = 10;

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
  const measureBias = (has: (one: (typeof learners)[number]) => boolean, power = 1) =>
    measureMean(learners.filter(has).map(({ bias }) => [bias ** power]));
  const rising = measureBias(({ rise }) => rise >= 0.2 * edgeAnswers);
  const falling = measureBias(({ rise }) => -rise >= 0.2 * edgeAnswers);
  const square = measureBias(({ answers }) => answers >= 3 * edgeAnswers, 2);
  const squares = boundMean(square, minMovers);
  return {
    ...{ learners: learners.length, rising: rising.cases, falling: falling.cases },
    ...{ biasRising: rising.mean, biasFalling: falling.mean, longLearners: square.cases },
    longRms: square.mean === null ? null : Math.sqrt(square.mean),
    intervals: {
      ...{ biasRising: boundMean(rising, minMovers), biasFalling: boundMean(falling, minMovers) },
      longRms: squares && ([Math.sqrt(Math.max(0, squares[0])), Math.sqrt(squares[1])] as const),
    },
  };
}
