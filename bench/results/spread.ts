import { computeSum } from '../../src/lists.js';
import type { Spread } from './results.js';

/** @param values one per round, at least one */
export function computeSpread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  const at = (place: number): number => sorted[place] as number;
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    low: at(0),
    high: at(sorted.length - 1),
    rounds: sorted.length,
  };
}

/** Rounds with the same number ran under the same conditions. */
export const computeRatioSpread = (values: readonly number[], references: readonly number[]): Spread =>
  computeSpread(values.map((value, round) => value / (references[round] as number)));

export const mean = (values: readonly number[]): number => computeSum(values) / values.length;

/** Squared deviations from the mean. */
export function sumSquares(values: readonly number[]): number {
  const centre = mean(values);
  return computeSum(values.map((value) => (value - centre) ** 2));
}
