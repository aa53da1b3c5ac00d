/**
 * Forecast of the share of right answers of a learner over a horizon, with an interval that covers as often as it
 * says. The expected share is the sigmoid of a sum of what the learner did so far; the interval is computed on the scale
 * asin(sqrt(share)), on which the chance of m single answers has the variance 1 / (4 m) whatever the share
 * (Anscombe 1948), and its widths are quantiles of what came out for learners whom the fit did not see.
 */
import { normalCdf, normalQuantile } from '../base/normal.js';
import { clamp, sigmoid } from '../base/probability.js';
import {
  type AccuracyTrace,
  chanceVariance,
  figureCount,
  figuresOf,
  memoryOf,
  sumOfParts,
  varianceParts,
} from './accuracy-figures.js';

/** A figure known at some places, on straight lines in between, and constant beyond the first and the last. */
export interface Knot {
  readonly at: number;
  readonly value: number;
}

/** What a horizon is counted in: days; answers in a log without times. */
export type HorizonUnit = 'days' | 'answers';

/** Levels at which widths are fitted; others lie between them. */
export const widthLevels = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99] as const;

/** Figures of the forecast; plain JSON. */
export interface AccuracyModel {
  readonly unit: HorizonUnit;
  /** What the fit rested on; 0 before the first. */
  readonly learners: number;
  readonly cases: number;
  /** Share of right answers of the population. */
  readonly mean: number;
  /** Log-odds of a learner like the population, and what they change with ln(1 + horizon). */
  readonly bias: number;
  readonly trend: number;
  /**
   * Weights of the figures, none negative, so that a right answer never lowers the forecast: those that hold at any
   * horizon, and those that fade with it, which is how far a learner returns to the mean.
   */
  readonly lasting: readonly number[];
  readonly fading: readonly number[];
  /** Parts of the variance of the latent share (see `varianceParts`), none negative. */
  readonly variance: readonly number[];
  /** Factors of that variance, by ln(1 + horizon) and by ln(1 + answers so far). */
  readonly byHorizon: readonly Knot[];
  readonly byHistory: readonly Knot[];
  /** Widths below and above the expected share at `widthLevels`, in standard deviations. */
  readonly below: readonly number[];
  readonly above: readonly number[];
}

export interface AccuracyForecast {
  /** Expected share of right answers, 0 to 1. */
  readonly expected: number;
  /** Standard deviation of the latent share on the scale asin(sqrt(share)), without the chance of single answers. */
  readonly sd: number;
}

/** On which the chance of single answers has the same variance everywhere. */
export const stabilised = (share: number): number => Math.asin(Math.sqrt(share));

/** @param horizon in the model's unit, above 0 */
export const forecastAccuracy = (
  model: AccuracyModel,
  { trace }: { readonly trace: AccuracyTrace },
  horizon: number,
): AccuracyForecast => {
  const expected = expectedShare(model, trace, horizon);
  return { expected, sd: Math.sqrt(latentVariance(model, expected, trace, horizon)) };
};

/** Never lower after a right answer, nor higher after a wrong one, at the same horizon. */
export function expectedShare(model: AccuracyModel, trace: AccuracyTrace, horizon: number): number {
  const figures = figuresOf(trace, model.mean);
  const memory = memoryOf(horizon);
  let logOdds = model.bias + model.trend * Math.log1p(horizon);
  for (let i = 0; i < figureCount; i++) {
    const weight = (model.lasting[i] as number) + memory * (model.fading[i] as number);
    logOdds += weight * (figures[i] as number);
  }
  return sigmoid(logOdds);
}

function latentVariance(
  model: AccuracyModel,
  expected: number,
  { right, wrong }: AccuracyTrace,
  horizon: number,
): number {
  const history = right + wrong;
  const latent = sumOfParts(model.variance, varianceParts(expected, history, horizon));
  return latent * varianceFactor(model, history, horizon);
}

/** What calibration by horizon and history makes of the variance. */
export const varianceFactor = (
  { byHorizon, byHistory }: Pick<AccuracyModel, 'byHorizon' | 'byHistory'>,
  history: number,
  horizon: number,
): number => valueAt(byHorizon, Math.log1p(horizon)) * valueAt(byHistory, Math.log1p(history));

export interface ShareInterval {
  readonly low: number;
  readonly high: number;
}

/**
 * Where the share of right answers among so many will lie with probability `level`.
 *
 * @param answers that the share is of, 1 or more: the more, the narrower
 * @param level .5 to .99; a higher one never has a narrower interval
 * @returns bounds within 0 to 1 around the expected share
 */
export function accuracyInterval(
  model: AccuracyModel,
  { expected, sd }: AccuracyForecast,
  answers: number,
  level: number,
): ShareInterval {
  const centre = stabilised(expected);
  const spread = totalSd(sd, answers);
  const { below, above } = intervalReach(model, level);
  return {
    low: Math.min(expected, shareAt(centre - spread * below)),
    high: Math.max(expected, shareAt(centre + spread * above)),
  };
}

/** How far intervals reach below and above, in standard deviations with the chance of single answers. */
export const intervalReach = (
  { below, above }: Pick<AccuracyModel, 'below' | 'above'>,
  level: number,
): { readonly below: number; readonly above: number } => ({
  below: widthAt(below, level),
  above: widthAt(above, level),
});

/** With the chance of single answers. */
const totalSd = (sd: number, answers: number): number => Math.sqrt(sd ** 2 + chanceVariance(answers));

const shareAt = (angle: number): number => Math.sin(clamp(angle, 0, Math.PI / 2)) ** 2;

/** Where widths are given: at the normal distribution's own, so that the lines between them are nearly straight. */
const widthPlaces = widthLevels.map((level) => normalQuantile(0.5 + level / 2));

const widthKnots = (widths: readonly number[]): Knot[] => [
  { at: 0, value: 0 },
  ...widthPlaces.map((at, i) => ({ at, value: widths[i] as number })),
];

const widthAt = (widths: readonly number[], level: number): number =>
  valueAt(widthKnots(widths), normalQuantile(0.5 + level / 2));

/**
 * Probability of a share below this one, by the intervals of all levels.
 *
 * @param share a bound between two possible ones; beyond 0 and 1 nothing can be
 */
export function accuracyCdf(
  model: AccuracyModel,
  { expected, sd }: AccuracyForecast,
  answers: number,
  share: number,
): number {
  if (share <= 0 || share >= 1) return share <= 0 ? 0 : 1;
  const distance = (stabilised(share) - stabilised(expected)) / totalSd(sd, answers);
  const widths = distance < 0 ? model.below : model.above;
  const last = widths.length - 1;
  const knots = [
    ...widthKnots(widths),
    { at: 2 * (widthPlaces[last] as number), value: 2 * (widths[last] as number) },
  ];
  const place = valueAt(
    knots.map(({ at, value }) => ({ at: value, value: at })),
    Math.abs(distance),
  );
  return normalCdf(distance < 0 ? -place : place);
}

/** @param knots by `at`, ascending; none: 1 everywhere */
function valueAt(knots: readonly Knot[], at: number): number {
  const next = knots.findIndex((knot) => knot.at > at);
  const above = knots[next];
  const below = knots[(next < 0 ? knots.length : next) - 1];
  if (above === undefined || below === undefined) return (above ?? below)?.value ?? 1;
  const part = (at - below.at) / (above.at - below.at);
  return below.value + part * (above.value - below.value);
}

/**
 * In force before the first fit of a tenant: what fits on two real logs have in common, rounded, and wider, for the
 * tenant's share of right answers is not known. Nor is what skills and items ask, so that ability says nothing yet.
 */
export const startAccuracy: AccuracyModel = {
  unit: 'days',
  learners: 0,
  cases: 0,
  mean: 0.7,
  bias: 0.85,
  trend: 0,
  lasting: [0.1, 0, 1.1, 0],
  fading: [0.9, 0, 1.8, 1.3],
  variance: [0.01, 0.045, 0.003, 0.42],
  byHorizon: [],
  byHistory: [],
  below: [0.535, 0.715, 0.94, 1.25, 1.7, 2.1, 3],
  above: [0.715, 0.86, 1.025, 1.235, 1.545, 1.85, 2.65],
};
