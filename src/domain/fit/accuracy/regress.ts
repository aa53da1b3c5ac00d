/** The expected share as a logistic regression on the learner's figures, and the variance about it by moments. */

import { sigmoid } from '../../base/common.js';
import { type BoxedQuadratic, descend, mirror, newQuadratic } from '../../base/descend.js';
import { accuracyConstants } from '../../base/params.js';
import {
  type AccuracyModel,
  chanceVariance,
  figureCount,
  figuresOf,
  memoryOf,
  stabilised,
  startAccuracy,
  sumOfParts,
  variancePartCount,
  varianceParts,
} from '../../prediction/accuracy-model.js';
import type { Observation, TracedCase } from './cases.js';

type Expected = Pick<AccuracyModel, 'bias' | 'trend' | 'lasting' | 'fading'>;

/** Bias and trend may have any sign. Their ridge is small: it only bounds them on logs without information. */
const free = 2;
const freeRidge = 0.01;
const width = free + 2 * figureCount;
const maxSteps = 25;
const tolerance = 1e-6;
const descent = { maxRounds: 2000, tolerance: 1e-9, ridge: 1e-9 };

/**
 * Newton's method on the log loss of the shares, each case counted once, drawn towards the figures before a fit.
 * @param from its coefficients are where the search begins
 */
export function fitExpected(from: AccuracyModel, cases: readonly TracedCase[], learners: number): Expected {
  const rows = new Float64Array(cases.length * width);
  for (const [i, one] of cases.entries()) rows.set(rowOf(one, from.mean), i * width);
  const shares = Float64Array.from(cases, ({ right, answers }) => right / answers);
  const ridge = accuracyConstants.fit.ridgeLearners / learners;
  let at = coefficientsOf(from);
  for (let step = 0; step < maxSteps; step++) {
    const problem = newQuadratic(width);
    for (const [i, share] of shares.entries()) addCase(problem, rows, i * width, share, at);
    const next = newtonStep(problem, at, ridge);
    const moved = Math.max(...next.map((value, j) => Math.abs(value - (at[j] as number))));
    at = next;
    if (moved < tolerance) break;
  }
  const [bias = 0, trend = 0, ...weights] = at;
  return { bias, trend, lasting: weights.slice(0, figureCount), fading: weights.slice(figureCount) };
}

function rowOf({ trace, horizon }: TracedCase, mean: number): number[] {
  const figures = figuresOf(trace, mean);
  const memory = memoryOf(horizon);
  return [1, Math.log1p(horizon), ...figures, ...figures.map((figure) => memory * figure)];
}

const coefficientsOf = (model: Expected): number[] =>
  [model.bias, model.trend].concat(model.lasting, model.fading);
const centres = coefficientsOf(startAccuracy);

function addCase(
  { gradient, hessian }: BoxedQuadratic,
  rows: Float64Array,
  from: number,
  share: number,
  at: readonly number[],
): void {
  let logOdds = 0;
  for (let j = 0; j < width; j++) logOdds += (at[j] as number) * (rows[from + j] as number);
  const expected = sigmoid(logOdds);
  const curvature = expected * (1 - expected);
  for (let j = 0; j < width; j++) {
    const figure = rows[from + j] as number;
    gradient[j] = (gradient[j] as number) + (expected - share) * figure;
    const scaled = curvature * figure;
    for (let k = 0; k <= j; k++)
      hessian[j * width + k] = (hessian[j * width + k] as number) + scaled * (rows[from + k] as number);
  }
}

function newtonStep(problem: BoxedQuadratic, at: readonly number[], ridge: number): number[] {
  const { gradient, hessian, solution, low } = problem;
  for (let j = 0; j < width; j++) {
    // In proportion to the cases' information about the coefficient, whatever its figure's scale.
    const own = (j < free ? freeRidge * ridge : ridge) * (hessian[j * width + j] as number);
    gradient[j] = (gradient[j] as number) + own * ((at[j] as number) - (centres[j] as number));
    hessian[j * width + j] = (hessian[j * width + j] as number) + own;
  }
  mirror(hessian, width);
  solution.set(at);
  low.fill(Number.NEGATIVE_INFINITY, 0, free);
  return lowestPoint(problem);
}

/** Without upper bounds; the lower ones are 0 unless set. */
function lowestPoint(problem: BoxedQuadratic): number[] {
  problem.high.fill(Number.POSITIVE_INFINITY);
  descend(problem, descent);
  return [...problem.solution];
}

const varianceRounds = 3;
const startVariance = 0.02;

/**
 * The parts of the variance of the latent share: least squares of squared deviations, less the chance of single
 * answers, on the parts, none of which may be negative. Weighted by what a squared deviation varies by.
 */
export function fitVariance(observed: readonly Observation[]): number[] {
  const moments = observed.map(({ expected, history, horizon, answers, right }) => ({
    parts: varianceParts(expected, history, horizon),
    chance: chanceVariance(answers),
    square: (stabilised(right / answers) - stabilised(expected)) ** 2,
  }));
  const size = variancePartCount;
  let variance = [startVariance, 0, 0, 0];
  for (let round = 0; round < varianceRounds; round++) {
    // The search begins at 0, where the gradient is.
    const problem = newQuadratic(size);
    const { gradient, hessian } = problem;
    for (const { parts, chance, square } of moments) {
      const weight = (sumOfParts(variance, parts) + chance) ** -2;
      for (const [j, part] of parts.entries()) {
        gradient[j] = (gradient[j] as number) - weight * part * (square - chance);
        for (const [k, other] of parts.entries())
          hessian[j * size + k] = (hessian[j * size + k] as number) + weight * part * other;
      }
    }
    variance = lowestPoint(problem);
  }
  return variance;
}
