/** Corrects the intervals of the share of correct answers by the outcomes of recent forecasts. */

import { type CorrectionGrid, type GridPoint, interpolateCells } from './correction-grid.js';

export interface ForecastOutcome extends GridPoint {
  readonly learner: string | number;
  /**
   * Observed minus expected share on the scale asin(sqrt(share)), in reaches of the 80 % interval on that side
   * before this correction: -1 to 1 is inside.
   */
  readonly position: number;
  /** Unix milliseconds. */
  readonly completedAt: number;
}

/** Multiply the reach of every interval below and above the expected share. */
export interface IntervalFactors {
  readonly below: number;
  readonly above: number;
}

/** Stored as JSON. */
export interface IntervalCalibration extends CorrectionGrid {
  /** Unix milliseconds. */
  readonly at: number;
  readonly outcomes: number;
  readonly learners: number;
  readonly cells: readonly IntervalFactors[];
}

export const findIntervalFactors = (calibration: IntervalCalibration, point: GridPoint): IntervalFactors => ({
  below: interpolateCells(calibration, point, (cell) => cell.below),
  above: interpolateCells(calibration, point, (cell) => cell.above),
});
