import { computeSum } from '../../src/lists.js';
import type { Spread } from './results.js';

/** Fewer rounds have no interval with the coverage. */
export const minRounds = 5;
const minCoverage = 0.9;

/**
 * Median with its distribution-free interval: the narrowest pair of order statistics that covers the median of the
 * distribution with a probability of at least 90 %, or smallest and largest value of fewer than 5 rounds.
 * @param values one per round, at least one
 */
export function computeSpread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const at = (place: number): number => sorted[place] as number;
  const order = findOrder(sorted.length);
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    low: at(order - 1),
    high: at(sorted.length - order),
    values,
  };
}

/**
 * The k-th smallest and the k-th largest of n values cover the median with 1 - 2 P(B < k), B ~ Binomial(n, 1/2)
 * (Conover, Practical Nonparametric Statistics). @returns the largest sufficient k, at least 1
 */
function findOrder(n: number): number {
  let k = 1;
  while (1 - 2 * computeBinomialBelow(n, k + 1) >= minCoverage) k++;
  return k;
}

/** @param n up to 1000: 2^-n must not be 0 */
function computeBinomialBelow(n: number, k: number): number {
  let term = 0.5 ** n;
  let sum = 0;
  for (let i = 0; i < k; i++) {
    sum += term;
    term *= (n - i) / (i + 1);
  }
  return sum;
}

/** Rounds with the same number ran under the same conditions. */
export const computeRatioSpread = (values: readonly number[], references: readonly number[]): Spread =>
  computeSpread(values.map((value, round) => value / (references[round] as number)));

/** Of values that are measured together, such as parts of the CPU time. */
export const computeSumSpread = (parts: readonly Spread[]): Spread =>
  computeSpread(
    (parts[0]?.values ?? []).map((_, i) => computeSum(parts.map(({ values }) => values[i] as number))),
  );

export const mean = (values: readonly number[]): number => computeSum(values) / values.length;

/** Squared deviations from the mean. */
export function sumSquares(values: readonly number[]): number {
  const centre = mean(values);
  return computeSum(values.map((value) => (value - centre) ** 2));
}
