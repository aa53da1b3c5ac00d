/** A slope that single odd days do not turn: the median of the slopes between all pairs of points. */
import { normalQuantile } from '../base/normal.js';
import { velocityModel } from '../base/params.js';

interface Point {
  readonly time: number;
  readonly value: number;
}

/** Change of the value per unit of time, with its 90 % interval. */
export interface Slope {
  readonly slope: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Theil-Sen slope. The interval is approximate: it comes from the variance of Kendall's S for independent points, and
 * daily masteries depend on one another, so it is too narrow.
 * Source: Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63 (1968); the lower rank is one inside
 * of Sen's, as science notes 4 and the reference values have it.
 *
 * @param points in any order, at different times; n of them cost n^2 / 2 slopes
 * @returns null below 5 points
 */
export function theilSen(points: readonly Point[]): Slope | null {
  const n = points.length;
  if (n < velocityModel.minDays) return null;
  const slopes = pairwiseSlopes(points).sort();
  const last = slopes.length - 1;
  const at = (rank: number): number => slopes[Math.min(last, Math.max(0, rank))] as number;
  const width = upper * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
  return {
    slope: (at(Math.floor(last / 2)) + at(Math.ceil(last / 2))) / 2,
    low: at(Math.floor((slopes.length - width) / 2)),
    high: at(Math.ceil((slopes.length + width) / 2)),
  };
}

/** One-sided quantile of the interval. */
const upper = normalQuantile((1 + velocityModel.level) / 2);

function pairwiseSlopes(points: readonly Point[]): Float64Array {
  const slopes = new Float64Array((points.length * (points.length - 1)) / 2);
  let next = 0;
  for (let i = 0; i < points.length; i++) {
    const a = points[i] as Point;
    for (let j = i + 1; j < points.length; j++) {
      const b = points[j] as Point;
      slopes[next++] = (b.value - a.value) / (b.time - a.time);
    }
  }
  return slopes;
}
