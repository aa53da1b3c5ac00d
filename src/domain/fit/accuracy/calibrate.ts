/**
 * Widths of the intervals, and factors of the variance by horizon and history, such that what came out for learners
 * outside the fit lies inside as often as the interval says (split-conformal prediction: Papadopoulos et al. 2002;
 * Lei et al. 2018).
 */
import { accuracyConstants as constants } from '../../base/params.js';
import { clamp } from '../../base/probability.js';
import {
  chanceVariance,
  historyBands,
  isInBand,
  sumOfParts,
  varianceParts,
} from '../../prediction/accuracy-figures.js';
import {
  type AccuracyModel,
  type Knot,
  stabilised,
  startAccuracy,
  varianceFactor,
  widthLevels,
} from '../../prediction/accuracy-model.js';
import type { Observation } from './cases.js';

export type Calibration = Pick<AccuracyModel, 'byHorizon' | 'byHistory' | 'below' | 'above'>;

const { fit: rules } = constants;

/** A deviation of what came out from what was expected, on the stabilised scale. */
interface Deviation {
  readonly learner: number;
  readonly history: number;
  readonly horizon: number;
  readonly off: number;
  /** Variance by the sum of its parts, and by the chance of single answers. */
  readonly latent: number;
  readonly chance: number;
}

/** Widths and factors depend on each other: a few rounds of both, widths last. */
const rounds = 2;

export function calibrate(model: AccuracyModel, observed: readonly Observation[]): Calibration {
  const deviations = observed.map((one) => deviationOf(model, one));
  const horizons = horizonGroups(deviations);
  const histories = historyGroups(deviations);
  let factors: Factors = { byHorizon: [], byHistory: [] };
  for (let round = 0; round < rounds; round++) {
    factors = { ...factors, byHorizon: refined(factors.byHorizon, horizons, deviations, factors) };
    factors = { ...factors, byHistory: refined(factors.byHistory, histories, deviations, factors) };
  }
  return { ...factors, ...widthsOf(deviations, factors) };
}

type Factors = Pick<AccuracyModel, 'byHorizon' | 'byHistory'>;
type Widths = Pick<AccuracyModel, 'below' | 'above'>;

function deviationOf(
  { variance }: AccuracyModel,
  { learner, history, horizon, answers, right, expected }: Observation,
): Deviation {
  return {
    learner,
    history,
    horizon,
    off: stabilised(right / answers) - stabilised(expected),
    latent: sumOfParts(variance, varianceParts(expected, history, horizon)),
    chance: chanceVariance(answers),
  };
}

const latentVariance = ({ latent, history, horizon }: Deviation, factors: Factors): number =>
  latent * varianceFactor(factors, history, horizon);

/** Quantiles of the deviations in standard deviations, each tail by itself, drawn to those before a fit. */
function widthsOf(deviations: readonly Deviation[], factors: Factors): Widths {
  const scaled = Float64Array.from(
    deviations,
    (one) => one.off / Math.sqrt(latentVariance(one, factors) + one.chance),
  ).sort();
  const learners = countLearners(deviations);
  const width = (start: number, level: number, sign: 1 | -1): number => {
    const tail = (1 - level) / 2;
    const trust = (learners * tail) / (learners * tail + rules.tailLearners);
    const found = Math.max(0, sign * quantile(scaled, sign < 0 ? tail : 1 - tail));
    return start + trust * (found - start);
  };
  return {
    below: growing(widthLevels.map((level, i) => width(startAccuracy.below[i] as number, level, -1))),
    above: growing(widthLevels.map((level, i) => width(startAccuracy.above[i] as number, level, 1))),
  };
}

const countLearners = (deviations: readonly Deviation[]): number =>
  new Set(deviations.map(({ learner }) => learner)).size;

const growing = (widths: readonly number[]): number[] =>
  widths.map((_, i) => Math.max(...widths.slice(0, i + 1)));

/**
 * @param sorted ascending, at least one
 * @param share 0 to 1
 */
function quantile(sorted: Float64Array, share: number): number {
  const place = share * (sorted.length - 1);
  const low = sorted[Math.floor(place)] as number;
  const high = sorted[Math.ceil(place)] as number;
  return low + (place - Math.floor(place)) * (high - low);
}

/** Deviations that share a factor, and where it stands. */
interface Group {
  readonly at: number;
  readonly members: readonly Deviation[];
}

const horizonGroups = (deviations: readonly Deviation[]): Group[] =>
  [...new Set(deviations.map(({ horizon }) => horizon))]
    .sort((a, b) => a - b)
    .map((horizon) => ({
      at: Math.log1p(horizon),
      members: deviations.filter((one) => one.horizon === horizon),
    }));

const historyGroups = (deviations: readonly Deviation[]): Group[] =>
  historyBands.map((band) => ({
    at: Math.log1p(band.middle),
    members: deviations.filter(({ history }) => isInBand(band, history)),
  }));

/** The level that factors are measured at. */
const factorLevel = 0.8;

/**
 * The factors, multiplied by what is missing until so many of each group's deviations lie inside: the quantile of the
 * factors at which each deviation by itself would lie on the edge. Groups of few learners are drawn to 1.
 */
function refined(
  before: readonly Knot[],
  groups: readonly Group[],
  deviations: readonly Deviation[],
  factors: Factors,
): Knot[] {
  const widths = widthsOf(deviations, factors);
  return groups.map(({ at, members }, i) => {
    const old = before[i]?.value ?? 1;
    if (members.length === 0) return { at, value: old };
    const needed = Float64Array.from(members, (one) => edgeFactor(one, factors, widths)).sort();
    const learners = countLearners(members);
    const trust = learners / (learners + rules.bandLearners);
    const missing = clamp(quantile(needed, factorLevel), rules.factor.low, rules.factor.high);
    return { at, value: clamp(old * missing ** trust, rules.factor.low, rules.factor.high) };
  });
}

const factorPlace = widthLevels.indexOf(factorLevel);

function edgeFactor(one: Deviation, factors: Factors, { below, above }: Widths): number {
  const width = (one.off < 0 ? below : above)[factorPlace] as number;
  return ((one.off / Math.max(width, leastWidth)) ** 2 - one.chance) / latentVariance(one, factors);
}

/** A distribution without spread has none. */
const leastWidth = 1e-3;
