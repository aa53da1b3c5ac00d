/**
 * Interval corrections by split-conformal prediction (Papadopoulos et al. 2002; Lei et al. 2018). Each cell
 * uses the deviations around it.
 */

import { accuracyConstants } from '../../base/accuracy-constants.js';
import { clamp } from '../../base/common.js';
import {
  type AccuracyModel,
  type Correction,
  cellsAround,
  chanceVariance,
  historyBands,
  type Surface,
  stabilised,
  startCorrection,
  sumOfParts,
  varianceParts,
  widthLevels,
} from '../../prediction/accuracy-model.js';
import type { Observation } from './cases.js';

const { fit: rules } = accuracyConstants;

type Grid = Omit<Surface, 'cells'>;
type Widths = Pick<Correction, 'below' | 'above'>;

const rounds = 2;

export function calibrate(model: AccuracyModel, observed: readonly Observation[]): Surface {
  const grid = {
    histories: historyBands.map(({ middle }) => Math.log1p(middle)),
    horizons: accuracyConstants.horizons[model.unit].map((horizon) => Math.log1p(horizon)),
  };
  const size = grid.histories.length * grid.horizons.length;
  const across = grid.horizons.length;
  const deviations = observed.map((one) => deviationOf(model, grid, one));
  const groupsBy = (groups: number, groupOf: (cell: number) => number) =>
    groupsOf(deviations, groups, groupOf);
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
    widthsOf(deviations, factors, all, [startCorrection], rules.tailLearners)[0] as Widths;
  for (let round = 0; round < rounds; round++)
    for (const { groups, learners } of groupings)
      factors = refined(deviations, factors, widthsOfAll(), groups, learners);
  const start = new Array<Widths>(size).fill(widthsOfAll());
  const widths = widthsOf(deviations, factors, cells, start, rules.cellTailLearners);
  return { ...grid, cells: widths.map((own, cell) => ({ factor: factors[cell] as number, ...own })) };
}

type Deviation = ReturnType<typeof deviationOf>;

const deviationOf = (
  { variance }: AccuracyModel,
  grid: Grid,
  { learner, history, span: horizon, answers, right, expected }: Observation,
) => ({
  learner,
  off: stabilised(right / answers) - stabilised(expected),
  latent: sumOfParts(variance, varianceParts(expected, history, horizon)),
  chance: chanceVariance(answers),
  around: cellsAround(grid, { history, horizon }),
});

type Groups = ReturnType<typeof groupsOf>;

function groupsOf(deviations: readonly Deviation[], size: number, groupOf: (cell: number) => number) {
  const weights = new Float64Array(size);
  const learners = new Float64Array(size);
  const own = new Float64Array(size);
  for (const [i, { learner, around }] of deviations.entries()) {
    for (const { cell, weight } of around) {
      const group = groupOf(cell);
      weights[group] = (weights[group] as number) + weight;
      own[group] = Math.min(1, (own[group] as number) + weight);
    }
    if (deviations[i + 1]?.learner === learner) continue;
    for (const [group, share] of own.entries()) learners[group] = (learners[group] as number) + share;
    own.fill(0);
  }
  return { groupOf, weights, learners };
}

function quantiles(
  deviations: readonly Deviation[],
  values: Float64Array,
  { groupOf, weights }: Groups,
  shares: readonly number[],
): number[][] {
  const found = Array.from(weights, () => shares.map(() => Number.NaN));
  const passed = new Float64Array(weights.length);
  const reached = new Uint8Array(weights.length);
  for (const place of ascending(values)) {
    for (const { cell, weight } of (deviations[place] as Deviation).around) {
      const group = groupOf(cell);
      const sum = (passed[group] as number) + weight;
      passed[group] = sum;
      while (
        sum >=
        (shares[reached[group] as number] ?? Number.POSITIVE_INFINITY) * (weights[group] as number) - rounding
      )
        (found[group] as number[])[(reached[group] as number)++] = values[place] as number;
    }
  }
  return found;
}

/** Sorts by value in single precision, then by index. Much faster than with a comparator. */
function ascending(values: Float64Array): Uint32Array {
  const bits = new Uint32Array(Float32Array.from(values).buffer);
  const keys = new BigUint64Array(values.length);
  const halves = new Uint32Array(keys.buffer);
  for (let place = 0; place < bits.length; place++) {
    const own = bits[place] as number;
    halves[2 * place] = place;
    // Negative floats need inverted bits.
    halves[2 * place + 1] = own >>> 31 === 1 ? ~own : own | 0x80000000;
  }
  keys.sort();
  return halves.filter((_, i) => i % 2 === 0);
}

/** For sums of the same weights in a different order. */
const rounding = 1e-6;

const latentVariance = ({ latent, around }: Deviation, factors: readonly number[]): number =>
  latent * around.reduce((sum, { cell, weight }) => sum + weight * (factors[cell] as number), 0);

const tails = widthLevels.map((level) => (1 - level) / 2);

/** Shrinks group quantiles to the start: half with `tailLearners` in the tail. */
function widthsOf(
  deviations: readonly Deviation[],
  factors: readonly number[],
  groups: Groups,
  starts: readonly Widths[],
  tailLearners: number,
): Widths[] {
  const scaled = (one: Deviation): number => one.off / Math.sqrt(latentVariance(one, factors) + one.chance);
  const shares = [...tails.toReversed(), ...tails.map((tail) => 1 - tail)].sort((a, b) => a - b);
  const found = quantiles(deviations, Float64Array.from(deviations, scaled), groups, shares);
  return starts.map((start, group) => {
    const own = found[group] as number[];
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
      below: side(start.below, (level) => -(own[last - level] as number)),
      above: side(start.above, (level) => own[last + 1 + level] as number),
    };
  });
}

const factorLevel = 0.8;
const factorPlace = widthLevels.indexOf(factorLevel);
const leastWidth = 1e-3;

function refined(
  deviations: readonly Deviation[],
  factors: readonly number[],
  { below, above }: Widths,
  groups: Groups,
  learners: number,
): number[] {
  const { low, high } = rules.factor;
  const edges = Float64Array.from(deviations, (one) => {
    const width = (one.off < 0 ? below : above)[factorPlace] as number;
    return ((one.off / Math.max(width, leastWidth)) ** 2 - one.chance) / latentVariance(one, factors);
  });
  const found = quantiles(deviations, edges, groups, [factorLevel]);
  return factors.map((old, cell) => {
    const group = groups.groupOf(cell);
    const [missing] = found[group] as [number];
    if (Number.isNaN(missing)) return old;
    const known = groups.learners[group] as number;
    return clamp(old * clamp(missing, low, high) ** (known / (known + learners)), low, high);
  });
}
