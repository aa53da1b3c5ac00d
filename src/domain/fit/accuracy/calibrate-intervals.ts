/**
 * Interval factors by the outcomes of recent forecasts. Outcomes count less with age, as in conformal prediction
 * under drift (Barber et al. 2023). Means and variances replace quantiles, because a band has few learners in its
 * tails. Estimates for all outcomes, horizons, histories and cells are each shrunk to the level above.
 */

import { accuracyConstants } from '../../base/accuracy-constants.js';
import { clamp, dayMs } from '../../base/common.js';
import { normalQuantile } from '../../base/normal-distribution.js';
import { createGrid, findNeighbourCells } from '../../prediction/correction-grid.js';
import type {
  ForecastOutcome,
  IntervalCalibration,
  IntervalFactors,
} from '../../prediction/interval-calibration.js';

export const minCalibrationOutcomes = 200;
export const minCalibrationLearners = 20;

const { calibration: rules } = accuracyConstants;
const grid = createGrid('days');
const across = grid.horizons.length;
const cellCount = grid.histories.length * across;

/** @param now Unix milliseconds; later outcomes are ignored @returns null for too few outcomes */
export function calibrateIntervals(
  outcomes: readonly ForecastOutcome[],
  now: number,
): IntervalCalibration | null {
  const oldest = now - rules.maxAgeDays * dayMs;
  const known = outcomes.filter(
    ({ completedAt, position }) => completedAt > oldest && completedAt <= now && !Number.isNaN(position),
  );
  const numbers = new Map(
    [...new Set(known.map(({ learner }) => learner))].map((learner, i) => [learner, i]),
  );
  const learners = numbers.size;
  if (known.length < minCalibrationOutcomes || learners < minCalibrationLearners) return null;
  const deviations = known.map((outcome) =>
    computeDeviation(outcome, numbers.get(outcome.learner) as number, now),
  );
  let cells: CellState[] = Array.from({ length: cellCount }, () => ({ mean: 0, variance: 1, doubt: 0 }));
  for (const level of levels) cells = refineCells(cells, deviations, learners, level);
  return { at: now, outcomes: known.length, learners, ...grid, cells: cells.map(computeFactors) };
}

/** The ends of an 80 % interval, in standard deviations. */
const edge = normalQuantile(0.9);

type Deviation = ReturnType<typeof computeDeviation>;

/** @param learner number, from 0 */
const computeDeviation = (
  { position, completedAt, ...point }: ForecastOutcome,
  learner: number,
  now: number,
) => ({
  learner,
  off: clamp(edge * position, -rules.maxDeviation, rules.maxDeviation),
  weight: 2 ** ((completedAt - now) / (rules.halfLifeDays * dayMs)),
  around: findNeighbourCells(grid, point),
});

/** Of deviations, in the standard deviations of the forecasts. */
interface CellState {
  readonly mean: number;
  readonly variance: number;
  /** Variance of the mean that learners share, as a part of `variance`. */
  readonly doubt: number;
}

interface Level {
  readonly groups: number;
  readonly groupOf: (cell: number) => number;
  /** The error of a mean is the same for all learners, so it widens the intervals. */
  readonly isShared: boolean;
}

const levels: readonly Level[] = [
  { groups: 1, groupOf: () => 0, isShared: true },
  { groups: across, groupOf: (cell) => cell % across, isShared: true },
  { groups: grid.histories.length, groupOf: (cell) => Math.floor(cell / across), isShared: false },
  { groups: cellCount, groupOf: (cell) => cell, isShared: false },
];

function refineCells(
  cells: readonly CellState[],
  deviations: readonly Deviation[],
  learners: number,
  { groups, groupOf, isShared }: Level,
): CellState[] {
  const sums = Array.from({ length: groups }, () => createGroupSums(learners));
  const shares = new Float64Array(groups);
  for (const { learner, off, weight, around } of deviations) {
    let [mean, variance] = [0, 0];
    for (const { cell, weight: share } of around) {
      const state = cells[cell] as CellState;
      mean += share * state.mean;
      variance += share * state.variance;
      shares[groupOf(cell)] = (shares[groupOf(cell)] as number) + share;
    }
    for (const { cell } of around) {
      const group = groupOf(cell);
      const share = shares[group] as number;
      shares[group] = 0;
      if (share > 0) addDeviation(sums[group] as GroupSums, learner, weight * share, off - mean, variance);
    }
  }
  const changes = sums.map(computeChange);
  return cells.map(({ mean, variance, doubt }, cell) => {
    const change = changes[groupOf(cell)] as ReturnType<typeof computeChange>;
    return {
      mean: mean + change.shift,
      variance: variance * change.scale,
      doubt: doubt + (isShared ? change.doubt : 0),
    };
  });
}

type GroupSums = ReturnType<typeof createGroupSums>;

/** Sums of weight, weight * off, and weight * off^0, off^1, off^2 / variance; the largest weight of each learner. */
const createGroupSums = (learners: number) => ({
  ...{ weight: 0, off: 0, precision: 0, scaledOff: 0, scaledSquare: 0 },
  learners: new Float64Array(learners),
});

function addDeviation(sums: GroupSums, learner: number, weight: number, off: number, variance: number): void {
  sums.weight += weight;
  sums.off += weight * off;
  sums.precision += weight / variance;
  sums.scaledOff += (weight * off) / variance;
  sums.scaledSquare += (weight * off * off) / variance;
  sums.learners[learner] = Math.max(sums.learners[learner] as number, weight);
}

const scaleLimits = { low: 0.1, high: 6 };

function computeChange({ weight, off, precision, scaledOff, scaledSquare, learners }: GroupSums) {
  const count = learners.reduce((sum, one) => sum + one, 0);
  const doubt = 1 / (count + rules.shrinkLearners);
  if (weight === 0) return { shift: 0, scale: 1, doubt };
  const trust = count * doubt;
  const shift = (trust * off) / weight;
  const square = (scaledSquare - 2 * shift * scaledOff + shift ** 2 * precision) / weight;
  return { shift, scale: clamp(square, scaleLimits.low, scaleLimits.high) ** trust, doubt };
}

/** Rounded, so that the order of summation does not matter. */
const digits = 1e6;

function computeFactors({ mean, variance, doubt }: CellState): IntervalFactors {
  const lasting = rules.lastingShift * mean;
  const spread = Math.sqrt(variance * (1 + doubt) + (mean - lasting) ** 2);
  const { low, high } = rules.factor;
  const limit = (factor: number): number => Math.round(digits * clamp(factor, low, high)) / digits;
  return { below: limit(spread - lasting / edge), above: limit(spread + lasting / edge) };
}
