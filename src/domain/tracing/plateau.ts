import { masteryThresholds } from '../base/bkt-parameters.js';
import { plateauConstants } from './tracing-constants.js';

/** Exponentially weighted regression of mastery on the attempt number, counted back from the last attempt. */
export const newPlateau = {
  /** Since the last long pause, at most `plateauConstants.maxAttempts`. */
  attempts: 0,
  /** Weighted sums of mastery, mastery x number, mastery². */
  sum: 0,
  timeSum: 0,
  squareSum: 0,
  /** Last attempts in a row with a positive test, at most 255. */
  run: 0,
};

export type PlateauState = Readonly<typeof newPlateau>;

const maxRun = 255;

/** An `errorDivisor` of 0 means too few attempts. */
const weights = buildWeightTable();

function buildWeightTable() {
  const { decay, maxAttempts } = plateauConstants;
  const table = [{ sum: 0, time: 0, determinant: 0, errorDivisor: 0 }];
  let [sum, time, square, squaredWeights] = [0, 0, 0, 0];
  for (let n = 1; n <= maxAttempts; n++) {
    square = decay * (square - 2 * time + sum);
    time = decay * (time - sum);
    sum = decay * sum + 1;
    squaredWeights = decay * decay * squaredWeights + 1;
    const determinant = sum * square - time * time;
    const effective = (sum * sum) / squaredWeights;
    const errorDivisor = n < 3 || effective <= 2 ? 0 : (1 - 2 / effective) * determinant;
    table.push({ sum, time, determinant, errorDivisor });
  }
  return table;
}

const findWeights = (attempts: number) =>
  weights[Math.min(attempts, plateauConstants.maxAttempts)] as (typeof weights)[number];

export function updatePlateau(state: PlateauState, masteryAfter: number, idleDays: number): PlateauState {
  const { decay, maxAttempts, resetDays } = plateauConstants;
  const from = idleDays > resetDays ? newPlateau : state;
  const next = {
    attempts: Math.min(from.attempts + 1, maxAttempts),
    sum: decay * from.sum + masteryAfter,
    timeSum: decay * (from.timeSum - from.sum),
    squareSum: decay * from.squareSum + masteryAfter * masteryAfter,
    run: 0,
  };
  if (isFlat(next, masteryAfter)) next.run = Math.min(from.run + 1, maxRun);
  return next;
}

/** A test of "no slope" would flag every short noisy run. */
function isFlat(state: PlateauState, mastery: number): boolean {
  if (state.attempts < plateauConstants.minAttempts || mastery >= masteryThresholds.mastery) return false;
  if (state.sum >= masteryThresholds.smoothed * findWeights(state.attempts).sum) return false;
  const trend = computePlateauSlope(state);
  return trend !== null && trend.slope + plateauConstants.z * trend.standardError < plateauConstants.minSlope;
}

export const isPlateau = ({ run }: PlateauState): boolean => run >= plateauConstants.hold;

/** Change per attempt; null below 3 attempts. The error is only a scale. */
export function computePlateauSlope(state: PlateauState): { slope: number; standardError: number } | null {
  const { attempts, sum, timeSum, squareSum } = state;
  const { sum: weight, time, determinant, errorDivisor } = findWeights(attempts);
  if (errorDivisor === 0) return null;
  const slope = (weight * timeSum - time * sum) / determinant;
  const intercept = (sum - slope * time) / weight;
  const squaredError = Math.max(0, squareSum - intercept * sum - slope * timeSum);
  return { slope, standardError: Math.sqrt(squaredError / errorDivisor) };
}

/** Null before the first attempt. */
export const computeSmoothedMastery = ({ attempts, sum }: PlateauState): number | null =>
  attempts === 0 ? null : sum / findWeights(attempts).sum;
