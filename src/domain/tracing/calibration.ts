import { calibrationModel } from '../base/params.js';

/**
 * Sums over the answers with a confidence, of confidence as a probability p minus y, 1 for a right answer. Whole numbers,
 * so that any order gives the same sums.
 */
export const newCalibration = {
  answers: 0,
  /** Sum of 10 (p - y). */
  biasTenths: 0,
  /** Sum of 100 (p - y)². */
  squaredHundredths: 0,
};

export type CalibrationState = Readonly<typeof newCalibration>;

/** Over-confident, under-confident. */
export type CalibrationFlag = 'over' | 'under';

interface Calibration {
  /** Mean of (p - y)², 0 to 1. */
  readonly brier: number;
  /** Mean confidence minus accuracy, above 0 where confidence is ahead. */
  readonly bias: number;
  readonly flag: CalibrationFlag | null;
}

/**
 * Counts an answer. Confidence 1 to 5 stands for .1, .3, .5, .7, .9.
 *
 * @param confidence null where none was sent: a default must not count
 */
export function updateCalibration(
  state: CalibrationState,
  confidence: number | null,
  isCorrect: boolean,
): CalibrationState {
  if (confidence === null) return state;
  const tenths = 2 * confidence - 1 - (isCorrect ? 10 : 0);
  return {
    answers: state.answers + 1,
    biasTenths: state.biasTenths + tenths,
    squaredHundredths: state.squaredHundredths + tenths * tenths,
  };
}

/** How well confidence fits accuracy; null where none was ever sent. */
export function calibration(state: CalibrationState): Calibration | null {
  const { answers, biasTenths, squaredHundredths } = state;
  if (answers === 0) return null;
  const bias = biasTenths / (10 * answers);
  const flag = isBiased(state, Math.abs(bias)) ? (bias > 0 ? 'over' : 'under') : null;
  return { brier: squaredHundredths / (100 * answers), bias, flag };
}

/**
 * Whether the bias is large and beyond chance: a one-sample test, with the sample's standard deviation (n - 1).
 * Compared as a product, for the deviation is 0 where all differences are equal.
 */
function isBiased({ answers, biasTenths, squaredHundredths }: CalibrationState, size: number): boolean {
  const { minAnswers, minBias, z } = calibrationModel;
  if (answers < minAnswers || size < minBias) return false;
  const variance = (answers * squaredHundredths - biasTenths ** 2) / (100 * answers * (answers - 1));
  return size >= z * Math.sqrt(variance / answers);
}
