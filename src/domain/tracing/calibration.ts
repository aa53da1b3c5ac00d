import { calibrationConstants } from './tracing-constants.js';

/** Integer sums of confidence p and outcome y do not depend on the order. */
export const newCalibration = {
  answers: 0,
  /** Sum of 10 (p - y). */
  biasTenths: 0,
  /** Sum of 100 (p - y)². */
  squaredHundredths: 0,
};

export type CalibrationState = Readonly<typeof newCalibration>;

export type CalibrationFlag = 'over' | 'under';

/** Confidence 1 to 5 means .1, .3, .5, .7, .9. Null is ignored. */
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

/** Brier score, and mean confidence minus accuracy. */
export function computeCalibration(state: CalibrationState) {
  const { answers, biasTenths, squaredHundredths } = state;
  if (answers === 0) return null;
  const bias = biasTenths / (10 * answers);
  const flag: CalibrationFlag | null = isBiased(state, Math.abs(bias)) ? (bias > 0 ? 'over' : 'under') : null;
  return { brier: squaredHundredths / (100 * answers), bias, flag };
}

/** One-sample test. Avoids division by a deviation of 0. */
function isBiased({ answers, biasTenths, squaredHundredths }: CalibrationState, size: number): boolean {
  const { minAnswers, minBias, z } = calibrationConstants;
  if (answers < minAnswers || size < minBias) return false;
  const variance = (answers * squaredHundredths - biasTenths ** 2) / (100 * answers * (answers - 1));
  return size >= z * Math.sqrt(variance / answers);
}
