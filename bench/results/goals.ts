import type { Figure, Goal, Spread } from './results.js';
import { computeRatioSpread } from './spread.js';

type GoalRow = readonly [name: string, about: string, unit: string, goal: Goal];

const atMost = (value: number): Goal => ({ atMost: value });
const atLeast = (value: number): Goal => ({ atLeast: value });
/** Machines differ in speed, so scaled µs assume this time of the echo. */
const referenceEchoMicros = 10;
const scaled = `scaled to an echo of ${referenceEchoMicros} µs`;

const accepting = 'front end, workers, runtime and Redis';
const closed = 'closed loop';
const lag = 'maximum age of the oldest waiting answer';
const stored = '100 per learner';
const whole = 'all processes, including pipeline and ClickHouse';

const goalRows = {
  whole: ['CPU per single answer, relative to echo', whole, 'times', atMost(7.5)],
  outbox: ['CPU until confirmed, relative to fastify-outbox', accepting, 'times', atMost(1)],
  postgres: ['CPU of fastify-postgres, relative to skilltrace', whole, 'times', atLeast(4)],
  postgresFunction: [
    'CPU of fastify-postgres-function, relative to skilltrace',
    whole,
    'times',
    atLeast(2.5),
  ],
  steady: ['CPU per answer at 1000 answers per second', whole, 'µs', atMost(250)],
  lag: ['lag of ClickHouse at 1000 answers per second', lag, 's', atMost(5)],
  batches: ['CPU per answer in batches of 1000', `without the runtime; ${scaled}`, 'µs', atMost(25)],
  draining: ['CPU of pipeline and ClickHouse per answer', scaled, 'µs', atMost(15)],
  predictions: ['predictions per second, relative to echo', closed, 'times', atLeast(0.1)],
  pair: ['Redis memory per learner and skill', '50 skills per learner, full state', 'bytes', atMost(200)],
  item: ['Redis memory per stored item of a learner', stored, 'bytes', atMost(32)],
  id: ['Redis memory per event id', stored, 'bytes', atMost(64)],
} satisfies Record<string, GoalRow>;

export type GoalKey = keyof typeof goalRows;

export const goalNames: readonly string[] = Object.values(goalRows).map(([name]) => name);

export function createGoalFigure(key: GoalKey, value: Spread): Figure {
  const [name, about, unit, goal]: GoalRow = goalRows[key];
  return { name, about, unit, value, goal };
}

export const createPlainFigure = (
  name: string,
  about: string,
  unit: string,
  value: Spread,
  goal: Goal | null = null,
): Figure => ({ name, about, unit, value, goal });

/** Figures without a goal come last. */
export function sortFigures(figures: readonly Figure[]): Figure[] {
  const measured = goalNames.flatMap((name) => figures.filter((figure) => figure.name === name));
  return [...measured, ...figures.filter(({ name }) => !goalNames.includes(name))];
}

/**
 * @param micros per round
 * @param echo CPU µs of the echo in the same rounds
 */
export const computeScaledSpread = (micros: readonly number[], echo: readonly number[]): Spread =>
  computeRatioSpread(
    micros.map((value) => value * referenceEchoMicros),
    echo,
  );
