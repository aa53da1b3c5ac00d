/**
 * Interval corrections by split-conformal prediction (Papadopoulos et al. 2002; Lei et al. 2018). Each cell
 * uses the deviations around it.
 */

import { accuracyConstants } from '../../base/accuracy-constants.js';
import { clamp } from '../../base/common.js';
import {
  type AccuracyModel,
  type CorrectionSurface,
  computeChanceVariance,
  computeVarianceParts,
  type IntervalCorrection,
  initialCorrection,
  stabiliseShare,
  sumVarianceParts,
  widthLevels,
} from '../../prediction/accuracy-model.js';
import { type CorrectionGrid, createGrid, findNeighbourCells } from '../../prediction/correction-grid.js';
import type { Observation } from './accuracy-cases.js';

const { fit: rules } = accuracyConstants;

type IntervalWidths = Pick<IntervalCorrection, 'below' | 'above'>;

const rounds = 2;

export function calibrateSurface(model: AccuracyModel, observed: readonly Observation[]): CorrectionSurface {
  const grid = createGrid(model.unit);
  const size = grid.histories.length * grid.horizons.length;
  const across = grid.horizons.length;
  const deviations = observed.map((one) => computeDeviation(model, grid, one));
  const groupsBy = (groups: number, groupOf: (cell: number) => number) =>
    buildGroups(deviations, groups, groupOf);
  const all = groupsBy(1, () => 0);
  const cells = groupsBy(size, (cell) => cell);
  const byHorizon = groupsBy(across, (cell) => cell % across);
  const byHistory = groupsBy(grid.histories.length, (cell) => Math.floor(cell / across));
  const groupings = [
    { groups: byHorizon, learners: rules.bandLearners },
    { groups: byHistory, learners: rules.bandLearners },
    { groups: cells, learners: rules.cellLearners },
  ];
  let factors = new Array<number>(size).fill(1);
  const widthsOfAll = () =>
    computeWidths(deviations, factors, all, [initialCorrection], rules.tailLearners)[0] as IntervalWidths;
  for (let round = 0; round < rounds; round++)
    for (const { groups, learners } of groupings)
      factors = refineFactors(deviations, factors, widthsOfAll(), groups, learners);
  const start = new Array<IntervalWidths>(size).fill(widthsOfAll());
  const widths = computeWidths(deviations, factors, cells, start, rules.cellTailLearners);
  return { ...grid, cells: widths.map((own, cell) => ({ factor: factors[cell] as number, ...own })) };
}

type Deviation = ReturnType<typeof computeDeviation>;

const computeDeviation = (
  { variance }: AccuracyModel,
  grid: CorrectionGrid,
  { learner, history, span: horizon, answers, right, expected }: Observation,
) => ({
  learner,
  off: stabiliseShare(right / answers) - stabiliseShare(expected),
  latent: sumVarianceParts(variance, computeVarianceParts(expected, history, horizon)),
  chance: computeChanceVariance(answers),
  around: findNeighbourCells(grid, { history, horizon }),
});

type Groups = ReturnType<typeof buildGroups>;

function buildGroups(deviations: readonly Deviation[], size: number, groupOf: (cell: number) => number) {
  const weights = new Float64Array(size);
  const learners = new Float64Array(size);
  const learnerShares = new Float64Array(size);
  for (const [i, { learner, around }] of deviations.entries()) {
    for (const { cell, weight } of around) {
      const group = groupOf(cell);
      weights[group] = (weights[group] as number) + weight;
      learnerShares[group] = Math.min(1, (learnerShares[group] as number) + weight);
    }
    if (deviations[i + 1]?.learner === learner) continue;
    for (const [group, share] of learnerShares.entries())
      learners[group] = (learners[group] as number) + share;
    learnerShares.fill(0);
  }
  return { groupOf, weights, learners };
}

function computeQuantiles(
  deviations: readonly Deviation[],
  values: Float64Array,
  { groupOf, weights }: Groups,
  shares: readonly number[],
): number[][] {
  const result = Array.from(weights, () => shares.map(() => Number.NaN));
  const passed = new Float64Array(weights.length);
  const reached = new Uint8Array(weights.length);
  for (const index of sortIndices(values)) {
    for (const { cell, weight } of (deviations[index] as Deviation).around) {
      const group = groupOf(cell);
      const sum = (passed[group] as number) + weight;
      passed[group] = sum;
      while (
        sum >=
        (shares[reached[group] as number] ?? Number.POSITIVE_INFINITY) * (weights[group] as number) -
          sumTolerance
      )
        (result[group] as number[])[(reached[group] as number)++] = values[index] as number;
    }
  }
  return result;
}

/** Sorts by value in single precision, then by index. Much faster than with a comparator. */
function sortIndices(values: Float64Array): Uint32Array {
  const bits = new Uint32Array(Float32Array.from(values).buffer);
  const keys = new BigUint64Array(values.length);
  const halves = new Uint32Array(keys.buffer);
  for (let index = 0; index < bits.length; index++) {
    const floatBits = bits[index] as number;
    halves[2 * index] = index;
    // Negative floats need inverted bits.
    halves[2 * index + 1] = floatBits >>> 31 === 1 ? ~floatBits : floatBits | 0x80000000;
  }
  keys.sort();
  return halves.filter((_, i) => i % 2 === 0);
}

/** For sums of the same weights in a different order. */
const sumTolerance = 1e-6;

const computeLatentVariance = ({ latent, around }: Deviation, factors: readonly number[]): number =>
  latent * around.reduce((sum, { cell, weight }) => sum + weight * (factors[cell] as number), 0);

const tails = widthLevels.map((level) => (1 - level) / 2);

/** Shrinks group quantiles to the start: half with `tailLearners` in the tail. */
function computeWidths(
  deviations: readonly Deviation[],
  factors: readonly number[],
  groups: Groups,
  starts: readonly IntervalWidths[],
  tailLearners: number,
): IntervalWidths[] {
  const scaled = (one: Deviation): number =>
    one.off / Math.sqrt(computeLatentVariance(one, factors) + one.chance);
  const shares = [...tails.toReversed(), ...tails.map((tail) => 1 - tail)].sort((a, b) => a - b);
  const quantilesByGroup = computeQuantiles(
    deviations,
    Float64Array.from(deviations, scaled),
    groups,
    shares,
  );
  return starts.map((start, group) => {
    const groupQuantiles = quantilesByGroup[group] as number[];
    const side = (starts: readonly number[], of: (level: number) => number): number[] => {
      let widest = 0;
      return starts.map((width, level) => {
        const expected = (groups.learners[group] as number) * (tails[level] as number);
        const quantile = Math.max(0, of(level));
        const missing = Number.isNaN(quantile) ? 0 : quantile - width;
        widest = Math.max(widest, width + (expected / (expected + tailLearners)) * missing);
        return widest;
      });
    };
    const last = widthLevels.length - 1;
    return {
      below: side(start.below, (level) => -(groupQuantiles[last - level] as number)),
      above: side(start.above, (level) => groupQuantiles[last + 1 + level] as number),
    };
  });
}

const factorLevel = 0.8;
const factorLevelIndex = widthLevels.indexOf(factorLevel);
const minWidth = 1e-3;

function refineFactors(
  deviations: readonly Deviation[],
  factors: readonly number[],
  { below, above }: IntervalWidths,
  groups: Groups,
  learners: number,
): number[] {
  const { low, high } = rules.factor;
  const edges = Float64Array.from(deviations, (one) => {
    const width = (one.off < 0 ? below : above)[factorLevelIndex] as number;
    return ((one.off / Math.max(width, minWidth)) ** 2 - one.chance) / computeLatentVariance(one, factors);
  });
  const quantilesByGroup = computeQuantiles(deviations, edges, groups, [factorLevel]);
  return factors.map((old, cell) => {
    const group = groups.groupOf(cell);
    const [missing] = quantilesByGroup[group] as [number];
    if (Number.isNaN(missing)) return old;
    const groupLearners = groups.learners[group] as number;
    return clamp(old * clamp(missing, low, high) ** (groupLearners / (groupLearners + learners)), low, high);
  });
}
