/** What all advice goes by, with an answer and with a forecast: conditions, and the figures in the texts. */

import { dayMs } from '../base/days.js';
import { adviceModel } from '../base/params.js';
import { type CalibrationState, calibration } from '../tracing/calibration.js';
import type { PlateauState } from '../tracing/plateau.js';

/**
 * Whether a strong skill has lost much to forgetting.
 *
 * @param stored mastery right after the last attempt
 * @param effective what is left of it
 */
export const hasFaded = (stored: number, effective: number): boolean =>
  stored >= adviceModel.strongMastery && effective <= (1 - adviceModel.fadedShare) * stored;

/** Attempts that a plateau was found on: older ones have next to no weight. */
export const recentAttempts = ({ attempts }: PlateauState): number =>
  Math.min(attempts, adviceModel.plateauAttempts);

/** Percentage points between confidence and accuracy. */
export const biasPoints = (state: CalibrationState): number =>
  Math.round(100 * Math.abs(calibration(state)?.bias ?? 0));

/** Rounded up, so that "under that many seconds" is true of every answer below the threshold. */
export const rapidFigure = (thresholdSeconds: number): number => Math.ceil(thresholdSeconds);

/** Whole days from one time to a later one, both Unix milliseconds. */
export const wholeDays = (from: number, to: number): number => Math.floor((to - from) / dayMs);
