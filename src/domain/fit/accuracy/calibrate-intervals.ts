/** Interval factors by weighted conformal prediction over the outcomes of recent forecasts. */

import { accuracyConstants } from '../../base/accuracy-constants.js';
import { historyBands } from '../../prediction/correction-grid.js';
import type { ForecastOutcome, IntervalCalibration } from '../../prediction/interval-calibration.js';

export const minCalibrationOutcomes = 200;
export const minCalibrationLearners = 20;

/** @param now Unix milliseconds; later outcomes are ignored @returns null for too few outcomes */
export function calibrateIntervals(
  outcomes: readonly ForecastOutcome[],
  now: number,
): IntervalCalibration | null {
  const known = outcomes.filter(({ completedAt }) => completedAt <= now);
  const learners = new Set(known.map(({ learner }) => learner)).size;
  if (known.length < minCalibrationOutcomes || learners < minCalibrationLearners) return null;
  const sorted = Float64Array.from(known, ({ position }) => position).sort();
  const quantile = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] as number;
  const factors = { below: Math.max(0.25, -quantile(0.1)), above: Math.max(0.25, quantile(0.9)) };
  const histories = historyBands.map(({ middle }) => Math.log1p(middle));
  const horizons = accuracyConstants.horizons.days.map((horizon) => Math.log1p(horizon));
  const cells = histories.flatMap(() => horizons.map(() => factors));
  return { at: now, outcomes: known.length, learners, histories, horizons, cells };
}
