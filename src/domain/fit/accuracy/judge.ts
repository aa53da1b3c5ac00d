/** How well a forecast of shares does on learners whom the fit did not see: what it is published by. */

import { shareLogLoss } from '../../base/metrics.js';
import { accuracyConstants as constants } from '../../base/params.js';
import { type AccuracyModel, accuracyInterval, forecastAccuracy } from '../../prediction/accuracy-model.js';
import type { TracedCase } from './fit.js';

export interface AccuracyQuality {
  /** Mean log loss of single answers, each case counted once. */
  readonly logLoss: number;
  /** Share of cases inside the 80 % interval. */
  readonly coverage80: number;
}

/** @param cases at least one, with horizons in the model's unit */
export function judgeAccuracy(model: AccuracyModel, cases: readonly TracedCase[]): AccuracyQuality {
  let loss = 0;
  let inside = 0;
  for (const { trace, horizon, answers, right } of cases) {
    const share = right / answers;
    const forecast = forecastAccuracy(model, { trace }, horizon);
    const { low, high } = accuracyInterval(model, forecast, answers, judgedLevel);
    loss += shareLogLoss(forecast.expected, share);
    if (low <= share && share <= high) inside++;
  }
  return { logLoss: loss / cases.length, coverage80: inside / cases.length };
}

const judgedLevel = 0.8;

/** Distance from .80 that is more than what counts as calibrated. */
export const miscalibration = ({ coverage80 }: AccuracyQuality): number =>
  Math.max(0, Math.abs(coverage80 - judgedLevel) - constants.coverageSlack);
