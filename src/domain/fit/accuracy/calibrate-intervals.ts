/**
 * Interval factors by the outcomes of recent forecasts. Outcomes count less with age, as in conformal prediction
 * under drift (Barber et al. 2023). Means and variances replace quantiles, because a band has few learners in its
 * tails. Estimates for all outcomes, horizons, histories and cells are each shrunk to the previous level.
 */

import { accuracyConstants } from '../../base/accuracy-constants.js';
import { clamp, dayMs } from '../../base/common.js';
import { normalQuantile } from '../../base/normal-distribution.js';
import { createGrid, findNeighbourCells, type GridPoint } from '../../prediction/correction-grid.js';
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
const down = grid.histories.length;

/** @param now Unix milliseconds; later outcomes are ignored @returns null for too few outcomes */
export function calibrateIntervals(
  outcomes: readonly ForecastOutcome[],
  now: number,
): IntervalCalibration | null {
  const oldest = now - rules.maxAgeDays * dayMs;
  const known = outcomes.filter(
    ({ completedAt, position }) => completedAt > oldest && completedAt <= now && !Number.isNaN(position),
  );
  const learners = new Map(
    [...new Set(known.map(({ learner }) => learner))].map((learner, i) => [learner, i]),
  );
  if (known.length < minCalibrationOutcomes || learners.size < minCalibrationLearners) return null;
  const deviations = known.map(({ learner, position, completedAt, ...point }) => ({
    learner: learners.get(learner) as number,
    cell: findNearestCell(point),
    off: clamp(edge * position, -rules.maxDeviation, rules.maxDeviation),
    weight: 2 ** ((completedAt - now) / (rules.halfLifeDays * dayMs)),
  }));
  let cells: CellState[] = Array.from({ length: down * across }, () => ({ mean: 0, variance: 1, doubt: 0 }));
  for (const level of levels) cells = refineCells(cells, deviations, learners.size, level);
  return {
    at: now,
    outcomes: known.length,
    learners: learners.size,
    ...grid,
    cells: cells.map(computeFactors),
  };
}

/** The ends of an 80 % interval, in standard deviations. */
const edge = normalQuantile(0.9);

const findNearestCell = (point: GridPoint): number =>
  findNeighbourCells(grid, point).reduce((a, b) => (b.weight > a.weight ? b : a)).cell;

/** Of deviations, in standard deviations of the forecasts. */
interface CellState {
  readonly mean: number;
  readonly variance: number;
  /** Variance of the mean, relative to `variance`. */
  readonly doubt: number;
}

interface Deviation {
  /** From 0. */
  readonly learner: number;
  readonly cell: number;
  readonly off: number;
  readonly weight: number;
}

/** `isShared`: the error of a mean affects all learners, so it widens the intervals. */
const levels = [
  { groups: 1, groupOf: () => 0, isShared: true },
  { groups: across, groupOf: (cell: number) => cell % across, isShared: true },
  { groups: down, groupOf: (cell: number) => Math.floor(cell / across), isShared: false },
  { groups: down * across, groupOf: (cell: number) => cell, isShared: false },
];

function refineCells(
  cells: readonly CellState[],
  deviations: readonly Deviation[],
  learners: number,
  { groups, groupOf, isShared }: (typeof levels)[number],
): CellState[] {
  const sums = Array.from({ length: groups }, () => createGroupSums(learners));
  for (const one of deviations)
    addDeviation(sums[groupOf(one.cell)] as GroupSums, one, cells[one.cell] as CellState);
  const changes = sums.map(computeChange);
  return cells.map(({ mean, variance, doubt }, cell) => {
    const change = changes[groupOf(cell)] as ReturnType<typeof computeChange>;
    return {
      mean: mean + change.shift * Math.sqrt(variance),
      variance: variance * change.scale,
      doubt: isShared ? doubt + change.doubt : doubt,
    };
  });
}

type GroupSums = ReturnType<typeof createGroupSums>;

/** Weighted sums. `learners`: the largest weight of each. */
const createGroupSums = (learners: number) => ({
  ...{ weight: 0, off: 0, square: 0 },
  learners: new Float64Array(learners),
});

function addDeviation(sums: GroupSums, one: Deviation, { mean, variance }: CellState): void {
  const { learner, weight } = one;
  const off = (one.off - mean) / Math.sqrt(variance);
  sums.weight += weight;
  sums.off += weight * off;
  sums.square += weight * off ** 2;
  sums.learners[learner] = Math.max(sums.learners[learner] as number, weight);
}

const leastScale = 0.1;

function computeChange({ weight, off, square, learners }: GroupSums) {
  const count = learners.reduce((sum, one) => sum + one, 0);
  const doubt = 1 / (count + rules.shrinkLearners);
  if (weight === 0) return { shift: 0, scale: 1, doubt };
  const trust = count * doubt;
  const shift = (trust * off) / weight;
  const scale = (square - 2 * shift * off) / weight + shift ** 2;
  return { shift, scale: Math.max(scale, leastScale) ** trust, doubt };
}

/** Rounded, so that the order of summation does not matter. */
const digits = 1e6;

function computeFactors({ mean, variance, doubt }: CellState): IntervalFactors {
  const { lastingShift, factor } = rules;
  const lasting = lastingShift * mean;
  const spread = Math.sqrt(variance * (1 + doubt) + (mean - lasting) ** 2);
  const limit = (value: number): number =>
    Math.round(digits * clamp(value, factor.low, factor.high)) / digits;
  return { below: limit(spread - lasting / edge), above: limit(spread + lasting / edge) };
}
