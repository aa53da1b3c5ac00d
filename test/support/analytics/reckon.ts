/** What the queries' right results are computed with, apart from ClickHouse. */
import { computeSum, groupBy } from '../../../src/lists.js';
import { dayMs, type School, type SchoolAnswer } from './school.js';

export type Cell = string | number | null;
/** The right result of a query, a list of rows; columns of bars are left out. */
export type Reckoned = (school: School) => Cell[][];

/** As ClickHouse rounds: what lies half way goes to the even number. */
export function round(value: number, digits = 0): number {
  const scaled = value * 10 ** digits;
  const floor = Math.floor(scaled);
  const isHalf = scaled - floor === 0.5;
  return (isHalf ? floor + (floor % 2) : Math.round(scaled)) / 10 ** digits;
}

export const meanOf = (numbers: readonly number[]): number => computeSum(numbers) / numbers.length;
/** Of a list, the mean of what is read from each item. */
export const mean = <Item>(items: readonly Item[], of: (item: Item) => number | boolean): number =>
  meanOf(items.map((item) => Number(of(item))));
export const sum = <Item>(items: readonly Item[], of: (item: Item) => number | boolean): number =>
  computeSum(items.map((item) => Number(of(item))));
/** The mean, rounded. */
export const avg = <Item>(items: readonly Item[], of: (item: Item) => number | boolean, digits = 3): number =>
  round(mean(items, of), digits);
export const count = <Item>(items: readonly Item[], of: (item: Item) => boolean): number =>
  items.filter(of).length;

/** The item at the level of the sorted list, which quantileExact takes. */
export const quantile = (numbers: readonly number[], level: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(level * numbers.length)] ?? Number.NaN;

/** Between the two neighbours of the level, as quantileExactInclusive. */
export function quantileBetween(numbers: readonly number[], level: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const place = level * (sorted.length - 1);
  const low = sorted[Math.floor(place)] as number;
  return low + (place - Math.floor(place)) * ((sorted[Math.ceil(place)] as number) - low);
}

/** Sorts by keys in turn; a minus is written by `down`. */
export const sorted = <Row>(rows: readonly Row[], ...keys: ((row: Row) => Cell)[]): Row[] =>
  rows.toSorted((a, b) => {
    for (const key of keys) {
      const [first, second] = [key(a) ?? Number.POSITIVE_INFINITY, key(b) ?? Number.POSITIVE_INFINITY];
      if (first !== second) return first < second ? -1 : 1;
    }
    return 0;
  });
/** Of rows of cells, that column. */
export const column =
  (place: number) =>
  (row: readonly Cell[]): Cell =>
    row[place] ?? null;
export const down =
  (place: number) =>
  (row: readonly Cell[]): Cell =>
    -Number(row[place]);

/** Number of a UTC day. */
export const dayOf = (ms: number): number => Math.floor(ms / dayMs);
/** Its Monday. */
export const mondayOf = (day: number): number => day - ((((day + 3) % 7) + 7) % 7);
export const dateOf = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);
export const monthOf = (day: number): string => `${dateOf(day).slice(0, 7)}-01`;

const isTimed = ({ timeSpentSeconds }: SchoolAnswer): boolean =>
  timeSpentSeconds !== null && timeSpentSeconds > 0 && timeSpentSeconds <= 3600;

/** Sums over answers, as the rollups keep them. */
export function sumsOf(answers: readonly SchoolAnswer[]) {
  const timed = answers.filter(isTimed);
  const seconds = timed.map(({ timeSpentSeconds }) => timeSpentSeconds ?? 0);
  return {
    answers: answers.length,
    correct: sum(answers, ({ isCorrect }) => isCorrect),
    predicted: sum(answers, ({ pCorrect }) => pCorrect),
    gain: sum(answers, ({ masteryBefore, masteryAfter }) => masteryAfter - masteryBefore),
    timed: timed.length,
    timedCorrect: sum(timed, ({ isCorrect }) => isCorrect),
    seconds: computeSum(seconds),
    logSeconds: sum(seconds, Math.log),
    logSecondsSquared: sum(seconds, (second) => Math.log(second) ** 2),
  };
}

/** One learner, skill and day: a row of learner_skill_daily. */
export type LearnerDay = ReturnType<typeof learnerDays>[number];

export function learnerDays(answers: readonly SchoolAnswer[]) {
  const days = groupBy(answers, (a) => `${a.userId} ${a.skillId} ${dayOf(a.occurredAt)}`);
  return [...days.values()].map((own) => {
    const inTurn = sorted(
      own,
      (a) => a.occurredAt,
      (a) => a.learnerSeq,
    );
    const [first, last] = [inTurn[0] as SchoolAnswer, inTurn.at(-1) as SchoolAnswer];
    return {
      ...{ userId: first.userId, skillId: first.skillId, day: dayOf(first.occurredAt), ...sumsOf(own) },
      ...{ cameWith: first.masteryBefore, mastery: last.masteryAfter },
      plateau: own.some(({ plateauDetected }) => plateauDetected),
    };
  });
}

/** Groups by learner and skill, each in the order of its days. */
export const byLearnerSkill = (days: readonly LearnerDay[]): LearnerDay[][] =>
  [
    ...groupBy(
      sorted(days, ({ day }) => day),
      ({ userId, skillId }) => `${userId} ${skillId}`,
    ).values(),
  ].map((own) => [...own]);
