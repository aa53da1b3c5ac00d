import type { Figure, Goal, Spread } from './results.js';
import { computeRatioSpread } from './spread.js';

type GoalRow = readonly [name: string, about: string, unit: string, goal: Goal, aim?: number];

const atMost = (value: number): Goal => ({ atMost: value });
const atLeast = (value: number): Goal => ({ atLeast: value });
/** Machines differ in speed, so scaled µs assume this time of the echo. */
const referenceEchoMicros = 10;
const scaled = `scaled to a machine on which the echo takes ${referenceEchoMicros} µs`;

const accepting = 'front end, workers, runtime and Redis';
const closed = 'closed loop, all connections busy';
const due = 'from the moment at which a request was due';
const lag = 'how long the oldest answer waited, at the worst moment';
const kept = '100 of each learner';
const oneProcess = 'one process, closed loop';
const delivered = 'all parts, delivery too';
const webhooksTogether = 'p99 while 10,000 webhooks are delivered, to without a subscriber';

const goalRows = {
  echo: ['CPU of a single answer, to the echo', accepting, 'times', atMost(6), 5],
  fastify: ['CPU of a single answer, to Fastify', accepting, 'times', atMost(1.2), 1],
  throughput: ['single answers a second, to Fastify', closed, 'times', atLeast(1.3), 1.6],
  promises: ['answers a second, to Fastify with the same promises', closed, 'times', atLeast(2), 3],
  whole: ['CPU of the whole service, to the echo', 'pipeline and ClickHouse too', 'times', atMost(7), 6],
  batches: ['CPU of an answer in batches of 1000', `without the runtime; ${scaled}`, 'µs', atMost(25), 18],
  draining: ['CPU of pipeline and ClickHouse for an answer', scaled, 'µs', atMost(15), 10],
  p99: ['p99 at half of saturation', due, 'ms', atMost(10), 5],
  p99Fastify: ['p99 at half of saturation, to Fastify', 'each at its own half', 'times', atMost(1)],
  steady: ['CPU of an answer at a steady 1000 a second', `${accepting}; ${scaled}`, 'µs', atMost(250), 150],
  predictions: ['predictions a second, to the echo', closed, 'times', atLeast(0.1), 0.15],
  lanes: ['CPU of an answer on all cores, to one lane', oneProcess, 'times', atMost(1.3), 1.15],
  pair: ['Redis memory for a learner and skill', '50 skills a learner, full state', 'bytes', atMost(200)],
  item: ['Redis memory for a remembered item of a learner', kept, 'bytes', atMost(32)],
  id: ['Redis memory for an event id', kept, 'bytes', atMost(64)],
  growth: ['CPU of an answer with 1,000,000 learners, to 1000', 'at the same load', 'times', atMost(1.2)],
  lag: ['lag of ClickHouse at half of saturation', lag, 's', atMost(5)],
  minute: ['lag of ClickHouse over a minute at half of saturation', lag, 's', atMost(5)],
  overload: ['accepted at twice the capacity, to the capacity', 'answers a second', 'times', atLeast(0.8)],
  analystsP99: ['p99 beside four analysts, to without them', 'at a steady 1000 a second', 'times', atMost(2)],
  analystsCpu: ['CPU of an answer beside four analysts, to without them', accepting, 'times', atMost(1.2)],
  analystsLag: ['lag of ClickHouse that four analysts add', lag, 's', atMost(1)],
  webhooksCpu: ['CPU of an answer with a subscriber, to without', delivered, 'times', atMost(1.1)],
  webhooksP99: [webhooksTogether, 'at a steady 500 a second, beside the same batches', 'times', atMost(1.2)],
  overloadP99: ['p99 of accepted answers at twice the capacity', due, 'ms', atMost(2000)],
} satisfies Record<string, GoalRow>;

export type GoalKey = keyof typeof goalRows;

export const goalNames: readonly string[] = Object.values(goalRows).map(([name]) => name);

export function createGoalFigure(key: GoalKey, value: Spread): Figure {
  const [name, about, unit, goal, aim]: GoalRow = goalRows[key];
  return { name, about, unit, value, goal, ...(aim !== undefined && { aim }) };
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
