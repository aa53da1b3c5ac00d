/** The variance of the latent share, by moments. */

import { chanceVariance, sumOfParts, varianceParts } from '../../prediction/accuracy-figures.js';
import { stabilised } from '../../prediction/accuracy-model.js';
import type { Observation } from './cases.js';
import { lowestPoint } from './expected.js';

/** Rounds of weights that follow from the variance of the round before. */
const rounds = 3;

/**
 * Least squares of squared deviations, less the chance of single answers, on the parts of the variance, none of which
 * may be negative. Weighted by what a squared deviation varies by.
 */
export function fitVariance(observed: readonly Observation[]): number[] {
  const cases = observed.map(({ expected, history, horizon, answers, right }) => ({
    parts: varianceParts(expected, history, horizon),
    chance: chanceVariance(answers),
    square: (stabilised(right / answers) - stabilised(expected)) ** 2,
  }));
  let variance = [startVariance, 0, 0, 0];
  for (let round = 0; round < rounds; round++) variance = leastSquares(cases, variance);
  return variance;
}

const startVariance = 0.02;

interface Moment {
  readonly parts: readonly number[];
  readonly chance: number;
  readonly square: number;
}

function leastSquares(cases: readonly Moment[], before: readonly number[]): number[] {
  const width = before.length;
  const gradient = new Float64Array(width);
  const hessian = new Float64Array(width * width);
  for (const { parts, chance, square } of cases) {
    const weight = (sumOfParts(before, parts) + chance) ** -2;
    for (const [j, part] of parts.entries()) {
      gradient[j] = (gradient[j] as number) - weight * part * (square - chance);
      for (const [k, other] of parts.entries()) {
        hessian[j * width + k] = (hessian[j * width + k] as number) + weight * part * other;
      }
    }
  }
  // The gradient is that at 0, where the search begins.
  return lowestPoint(hessian, gradient, new Array<number>(width).fill(0), 0);
}
