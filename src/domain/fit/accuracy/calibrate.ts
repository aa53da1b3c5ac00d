/**
 * Widths of the intervals, and factors of the variance by horizon and history, such that what came out for learners
 * outside the fit lies inside as often as the interval says (split-conformal prediction: Papadopoulos et al. 2002;
 * Lei et al. 2018).
 */

import { clamp } from '../../base/common.js';
import { accuracyConstants } from '../../base/params.js';
import {
  type AccuracyModel,
  chanceVariance,
  historyBands,
  isInBand,
  stabilised,
  startAccuracy,
  sumOfParts,
  varianceFactor,
  varianceParts,
  widthLevels,
} from '../../prediction/accuracy-model.js';
import type { Observation } from './cases.js';

const { fit: rules } = accuracyConstants;

type Factors = Pick<AccuracyModel, 'byHorizon' | 'byHistory'>;
type Widths = Pick<AccuracyModel, 'below' | 'above'>;

/** Widths and factors depend on each other: a few rounds of both, widths last. */
const rounds = 2;

export function calibrate(model: AccuracyModel, observed: readonly Observation[]): Factors & Widths {
  const deviations = observed.map((one) => deviationOf(model, one));
  const horizons = [...new Set(deviations.map(({ horizon }) => horizon))]
    .sort((a, b) => a - b)
    .map((at) => groupOf(deviations, at, ({ horizon }) => horizon === at));
  const histories = historyBands.map((band) =>
    groupOf(deviations, band.middle, ({ history }) => isInBand(band, history)),
  );
  let factors: Factors = { byHorizon: [], byHistory: [] };
  for (let round = 0; round < rounds; round++) {
    factors = refined(factors, 'byHorizon', horizons, deviations);
    factors = refined(factors, 'byHistory', histories, deviations);
  }
  return { ...factors, ...widthsOf(deviations, factors) };
}

type Deviation = ReturnType<typeof deviationOf>;

/** How far what came out is from what was expected, on the stabilised scale, and what variance is expected of it. */
const deviationOf = (
  { variance }: AccuracyModel,
  { learner, history, horizon, answers, right, expected }: Observation,
) => ({
  learner,
  history,
  horizon,
  off: stabilised(right / answers) - stabilised(expected),
  latent: sumOfParts(variance, varianceParts(expected, history, horizon)),
  chance: chanceVariance(answers),
});

const latentVariance = ({ latent, history, horizon }: Deviation, factors: Factors): number =>
  latent * varianceFactor(factors, history, horizon);

/** Quantiles of the deviations in standard deviations, each tail by itself, drawn to those before a fit. */
function widthsOf(deviations: readonly Deviation[], factors: Factors): Widths {
  const scaled = Float64Array.from(
    deviations,
    (one) => one.off / Math.sqrt(latentVariance(one, factors) + one.chance),
  ).sort();
  const learners = countLearners(deviations);
  const widths = (starts: readonly number[], sign: 1 | -1): number[] => {
    let widest = Number.NEGATIVE_INFINITY;
    return widthLevels.map((level, i) => {
      const start = starts[i] as number;
      const tail = (1 - level) / 2;
      const trust = (learners * tail) / (learners * tail + rules.tailLearners);
      const found = Math.max(0, sign * quantile(scaled, sign < 0 ? tail : 1 - tail));
      widest = Math.max(widest, start + trust * (found - start));
      return widest;
    });
  };
  return { below: widths(startAccuracy.below, -1), above: widths(startAccuracy.above, 1) };
}

const countLearners = (deviations: readonly Deviation[]): number =>
  new Set(deviations.map(({ learner }) => learner)).size;

/** @param sorted ascending, at least one @param share 0 to 1 */
function quantile(sorted: Float64Array, share: number): number {
  const place = share * (sorted.length - 1);
  const low = sorted[Math.floor(place)] as number;
  const high = sorted[Math.ceil(place)] as number;
  return low + (place - Math.floor(place)) * (high - low);
}

type Group = ReturnType<typeof groupOf>;

const groupOf = (
  deviations: readonly Deviation[],
  middle: number,
  isMember: (one: Deviation) => boolean,
) => ({ at: Math.log1p(middle), members: deviations.filter(isMember) });

const factorLevel = 0.8;
const factorPlace = widthLevels.indexOf(factorLevel);
const leastWidth = 1e-3;

/**
 * The factors of one kind, multiplied by what is missing until so many of each group's deviations lie inside: the
 * quantile of the factors at which each deviation by itself would lie on the edge. Groups of few learners are drawn
 * to 1.
 */
function refined(
  factors: Factors,
  kind: keyof Factors,
  groups: readonly Group[],
  deviations: readonly Deviation[],
): Factors {
  const { below, above } = widthsOf(deviations, factors);
  const { low, high } = rules.factor;
  const edgeFactor = (one: Deviation): number => {
    const width = (one.off < 0 ? below : above)[factorPlace] as number;
    return ((one.off / Math.max(width, leastWidth)) ** 2 - one.chance) / latentVariance(one, factors);
  };
  const knots = groups.map(({ at, members }, i) => {
    const old = factors[kind][i]?.value ?? 1;
    if (members.length === 0) return { at, value: old };
    const learners = countLearners(members);
    const trust = learners / (learners + rules.bandLearners);
    const missing = clamp(quantile(Float64Array.from(members, edgeFactor).sort(), factorLevel), low, high);
    return { at, value: clamp(old * missing ** trust, low, high) };
  });
  return { ...factors, [kind]: knots };
}
