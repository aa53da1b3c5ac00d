/**
 * Forecasts the share of correct answers. On the scale asin(sqrt(share)), m answers have the sampling
 * variance 1 / (4 m) (Anscombe 1948). Widths are quantiles on unseen learners.
 */

import { accuracyConstants as constants } from '../base/accuracy-constants.js';
import { clamp, logit, sigmoid } from '../base/common.js';
import { normalCdf, normalQuantile } from '../base/normal-distribution.js';
import { predictionConstants } from '../base/prediction-constants.js';
import type { LearnerTrace } from '../tracing/traces.js';
import type { Trend } from '../tracing/trend.js';
import {
  type CorrectionGrid,
  findNeighbours,
  type GridPoint,
  interpolateCells,
  type Neighbour,
} from './correction-grid.js';
import {
  findIntervalFactors,
  type IntervalCalibration,
  type IntervalFactors,
} from './interval-calibration.js';

export interface IntervalCorrection {
  readonly factor: number;
  /** Widths at `widthLevels`, in standard deviations. */
  readonly below: readonly number[];
  readonly above: readonly number[];
}

export interface CorrectionSurface extends CorrectionGrid {
  readonly cells: readonly IntervalCorrection[];
}

/** `answers` if the log has no times. */
export type HorizonUnit = 'days' | 'answers';

export const widthLevels = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99] as const;

export const initialCorrection: IntervalCorrection = {
  factor: 1,
  below: [0.535, 0.715, 0.94, 1.25, 1.7, 2.1, 3],
  above: [0.715, 0.86, 1.025, 1.235, 1.545, 1.85, 2.65],
};

/** Used before a tenant's first fit. Stored as JSON. */
export const initialAccuracyModel = {
  unit: 'days' as HorizonUnit,
  learners: 0,
  cases: 0,
  mean: 0.7,
  /** Log-odds of an average learner, and their change with ln(1 + horizon). */
  bias: 0.85,
  trend: 0,
  /** Weights, not negative. `fading` weights decrease with the horizon. */
  lasting: [0.1, 0, 1.1, 0],
  fading: [0.9, 0, 1.8, 1.3],
  /** Weights of `computeVarianceParts`, not negative. */
  variance: [0.03, 0.01, 0.003, 0.003, 0, 0, 0.42],
  surface: { histories: [0], horizons: [0], cells: [initialCorrection] } as CorrectionSurface,
};

export type AccuracyModel = Readonly<typeof initialAccuracyModel> & {
  /** Added when the model is used; not part of its version. */
  readonly calibration?: IntervalCalibration | null;
};

type AccuracyTrace = Pick<LearnerTrace, 'ability' | 'recent' | 'slow' | 'right' | 'wrong'>;

export interface AccuracySubject {
  readonly trace: AccuracyTrace;
  readonly trend: Pick<Trend, 'share'>;
}

export const figureCount = 4;

/** Relative to the population. No correct answer lowers a figure. */
export function computeFigures(
  { ability, recent, slow, right, wrong }: AccuracyTrace,
  mean: number,
): readonly number[] {
  const { priorAnswers, shareBounds } = constants;
  const answers = right + wrong;
  const share = (right + priorAnswers * mean) / (answers + priorAnswers);
  return [
    logit(clamp(share, shareBounds.low, shareBounds.high)) - logit(mean),
    ability,
    slow - (mean - 0.5) * (1 - (1 - predictionConstants.slowRate) ** answers),
    recent - (mean - 0.5) * (1 - (1 - predictionConstants.recentRate) ** answers),
  ];
}

/** Weight of temporary effects; decreases with the horizon. */
export const computeMemory = (horizon: number): number => 1 / (1 + Math.log1p(horizon));

export const variancePartCount = 7;

/** Unknown ability, daily variation and lasting changes, each for novices and others; then failure risk. */
export function computeVarianceParts(expected: number, history: number, horizon: number): readonly number[] {
  const memory = computeMemory(horizon);
  const novice = computeNoviceShare(history);
  const parts = [1, memory, Math.sqrt(horizon / constants.wanderHorizon)];
  return [...parts.flatMap((part) => [part * novice, part * (1 - novice)]), memory * (1 - expected) ** 2];
}

const computeNoviceShare = (history: number): number =>
  Math.sqrt(constants.variancePrior / (history + constants.variancePrior));

/** Variance on the scale asin(sqrt(share)). */
export function sumVarianceParts(variance: readonly number[], parts: readonly number[]): number {
  const sum = parts.reduce((total, part, i) => total + part * (variance[i] as number), 0);
  return Math.max(sum, constants.fit.leastVariance);
}

export const computeChanceVariance = (answers: number): number => 1 / (4 * answers);

export const stabiliseShare = (share: number): number => Math.asin(Math.sqrt(share));

/** The sd excludes sampling variance. */
export function forecastAccuracy(model: AccuracyModel, subject: AccuracySubject, horizon: number) {
  const expected = computeExpectedShare(model, subject, horizon);
  const history = subject.trace.right + subject.trace.wrong;
  const latent = sumVarianceParts(model.variance, computeVarianceParts(expected, history, horizon));
  const factor = interpolateCells(model.surface, { history, horizon }, (cell) => cell.factor);
  return { expected, sd: Math.sqrt(latent * factor), history, horizon };
}

export type AccuracyForecast = Readonly<ReturnType<typeof forecastAccuracy>>;

export function computeExpectedShare(
  model: AccuracyModel,
  { trace, trend }: AccuracySubject,
  horizon: number,
): number {
  const memory = computeMemory(horizon);
  let logOdds = model.bias + model.trend * Math.log1p(horizon);
  for (const [i, figure] of computeFigures(trace, model.mean).entries())
    logOdds += ((model.lasting[i] as number) + memory * (model.fading[i] as number)) * figure;
  return sigmoid(clampToRecent(logOdds, trend.share, trace.right + trace.wrong));
}

/** Limits the distance to the recent share, for learners who change. */
function clampToRecent(logOdds: number, share: number, counted: number): number {
  const { most, prior, slack, novice } = constants.nearRecent;
  const answers = Math.min(counted, most);
  if (answers === 0) return logOdds;
  const recent = logit((share * answers + prior) / (answers + 2 * prior));
  const reach = (slack / Math.sqrt(answers)) * (1 + novice / answers);
  return clamp(logOdds, recent - reach, recent + reach);
}

export function computeAccuracyInterval(
  model: AccuracyModel,
  forecast: AccuracyForecast,
  answers: number,
  level: number,
) {
  const { expected, sd } = forecast;
  const centre = stabiliseShare(expected);
  const spread = computeTotalSd(sd, answers);
  const { below, above } = computeIntervalReach(model, forecast, level);
  return {
    low: Math.min(expected, toShare(centre - spread * below)),
    high: Math.max(expected, toShare(centre + spread * above)),
  };
}

/** In standard deviations that include the sampling variance. */
export function computeIntervalReach(model: AccuracyModel, point: GridPoint, level: number) {
  const widths = interpolateWidths(model, point);
  return { below: interpolateWidth(widths.below, level), above: interpolateWidth(widths.above, level) };
}

/** Position of a `ForecastOutcome`. @param reach of the 80 % interval without a calibration */
export function computeOutcomePosition(
  { expected, sd }: Pick<AccuracyForecast, 'expected' | 'sd'>,
  reach: IntervalFactors,
  answers: number,
  share: number,
): number {
  const distance = (stabiliseShare(share) - stabiliseShare(expected)) / computeTotalSd(sd, answers);
  return distance / (distance < 0 ? reach.below : reach.above);
}

const noFactors: IntervalFactors = { below: 1, above: 1 };

/** 1 without a calibration. */
export const findModelFactors = ({ calibration }: AccuracyModel, point: GridPoint): IntervalFactors =>
  calibration ? findIntervalFactors(calibration, point) : noFactors;

const interpolateWidths = (model: AccuracyModel, point: GridPoint) => {
  const factors = findModelFactors(model, point);
  const widths = (side: 'below' | 'above'): number[] =>
    widthLevels.map(
      (_, i) => factors[side] * interpolateCells(model.surface, point, (cell) => cell[side][i] as number),
    );
  return { below: widths('below'), above: widths('above') };
};

const computeTotalSd = (sd: number, answers: number): number =>
  Math.sqrt(sd ** 2 + computeChanceVariance(answers));

const toShare = (angle: number): number => Math.sin(clamp(angle, 0, Math.PI / 2)) ** 2;

const levelToQuantile = (level: number): number => normalQuantile(0.5 + level / 2);

/** Widths are nearly linear in these quantiles. */
const levelQuantiles = [0, ...widthLevels.map(levelToQuantile)];

const interpolateWidth = (widths: readonly number[], level: number): number =>
  interpolateValue(levelQuantiles, [0, ...widths], levelToQuantile(level));

/** Probability of a share below `share`. */
export function computeAccuracyCdf(
  model: AccuracyModel,
  forecast: AccuracyForecast,
  answers: number,
  share: number,
): number {
  const { expected, sd } = forecast;
  if (share <= 0 || share >= 1) return share <= 0 ? 0 : 1;
  const side = share < expected ? 'below' : 'above';
  const distance = (stabiliseShare(share) - stabiliseShare(expected)) / computeTotalSd(sd, answers);
  const widths = [0, ...interpolateWidths(model, forecast)[side]];
  // Extrapolates to twice the last width.
  const extended = (figures: readonly number[]): number[] => [...figures, 2 * (figures.at(-1) as number)];
  const quantile = interpolateValue(extended(widths), extended(levelQuantiles), Math.abs(distance));
  return normalCdf(distance < 0 ? -quantile : quantile);
}

function interpolateValue(positions: readonly number[], values: readonly number[], target: number): number {
  const [[low], above] = findNeighbours(positions, target) as [Neighbour, Neighbour?];
  const value = values[low] as number;
  return above === undefined ? value : value + above[1] * ((values[above[0]] as number) - value);
}
