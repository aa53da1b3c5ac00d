import { normalQuantile } from '../base/normal.js';
import { scoreModel } from '../base/params.js';
import { clamp } from '../base/probability.js';
import type { PerSection, Section } from '../base/types.js';
import type { SectionMeasure } from './section-measure.js';

/** Both abilities after shrinkage to the population, on its scale of mean 0 and variance 1. */
export interface AbilityEstimate {
  readonly theta: PerSection<number>;
  readonly variance: PerSection<number>;
  readonly covariance: number;
  /** Variance of the error that all of a section's skills have in common; no part of `variance`. */
  readonly distrust: PerSection<number>;
}

/**
 * Joint estimate of both abilities: the measures are shrunk together under the prior [[1, rho], [rho, 1]]. A section
 * without data borrows from the other. Source: science notes 6.2; all constants in params.ts.
 */
export function estimateAbilities({ math, rw }: PerSection<SectionMeasure>): AbilityEstimate {
  const rho = scoreModel.correlation;
  const prior = 1 / (1 - rho * rho);
  const a = prior + 1 / math.noise;
  const d = prior + 1 / rw.noise;
  const b = -rho * prior;
  const determinant = a * d - b * b;
  const variance = { math: d / determinant, rw: a / determinant };
  const covariance = -b / determinant;
  const pullMath = math.value / math.noise;
  const pullRw = rw.value / rw.noise;
  const theta = {
    math: variance.math * pullMath + covariance * pullRw,
    rw: covariance * pullMath + variance.rw * pullRw,
  };
  return { theta, variance, covariance, distrust: { math: math.distrust, rw: rw.distrust } };
}

const roundToStep = (score: number): number => scoreModel.step * Math.floor(score / scoreModel.step + 0.5);
const floorToStep = (score: number): number => scoreModel.step * Math.floor(score / scoreModel.step);
const ceilToStep = (score: number): number => scoreModel.step * Math.ceil(score / scoreModel.step);

const clampSection = (score: number): number => clamp(score, scoreModel.sectionMin, scoreModel.sectionMax);

/** Unrounded score of a section for an ability. */
const centreOf = (section: Section, theta: number): number =>
  clampSection(scoreModel.mean[section] + scoreModel.sd * theta);

/** Rounded scores; the total is the sum of the rounded sections, always. */
export interface Scores extends PerSection<number> {
  readonly total: number;
}

export function scoresOf(theta: PerSection<number>): Scores {
  const math = clampSection(roundToStep(centreOf('math', theta.math)));
  const rw = clampSection(roundToStep(centreOf('rw', theta.rw)));
  return { math, rw, total: math + rw };
}

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Scores on a test taken some days ahead, with intervals for what that test would show. */
export interface ScoreForecast {
  readonly scores: Scores;
  readonly intervals: PerSection<Interval> & { readonly total: Interval };
  /** Centre and standard deviation of the total, unrounded. */
  readonly totalCentre: number;
  readonly totalSd: number;
  readonly sd: PerSection<number>;
}

/** How abilities go on until a day, on the population's scale. */
export interface AbilityOutlook {
  readonly change: PerSection<number>;
  /** How far gains or losses alone would move them: what is not known of the change grows with it. */
  readonly swing: PerSection<number>;
}

/**
 * Forecast of both sections and their total. Source: science notes 6.4.
 *
 * @param days 0 to 365
 * @param level of the intervals, 0.5 to 0.99; they include the test's own error of measurement
 */
export function forecastScores(
  estimate: AbilityEstimate,
  { change, swing }: AbilityOutlook,
  days: number,
  level: number,
): ScoreForecast {
  const theta = { math: estimate.theta.math + change.math, rw: estimate.theta.rw + change.rw };
  const scores = scoresOf(theta);
  const centre = { math: centreOf('math', theta.math), rw: centreOf('rw', theta.rw) };
  const variance = {
    math: sectionVariance(estimate.variance.math + estimate.distrust.math, swing.math, days),
    rw: sectionVariance(estimate.variance.rw + estimate.distrust.rw, swing.rw, days),
  };
  const drift = scoreModel.driftCorrelation * scoreModel.driftPerDay * days;
  const shared = Math.sqrt(estimate.distrust.math * estimate.distrust.rw);
  const covariance = scoreModel.sd ** 2 * (estimate.covariance + shared + drift);
  const sd = { math: Math.sqrt(variance.math), rw: Math.sqrt(variance.rw) };
  const totalSd = Math.sqrt(variance.math + variance.rw + 2 * covariance);
  const totalCentre = centre.math + centre.rw;
  const z = normalQuantile(0.5 + level / 2);
  const math = sectionInterval(centre.math, z * sd.math, scores.math);
  const rw = sectionInterval(centre.rw, z * sd.rw, scores.rw);
  const total = totalInterval(totalCentre, z * totalSd, scores.total, math, rw);
  return { scores, intervals: { math, rw, total }, totalCentre, totalSd, sd };
}

function sectionVariance(abilityVariance: number, swing: number, days: number): number {
  const ahead = abilityVariance + (0.5 * swing) ** 2 + scoreModel.driftPerDay * days;
  return scoreModel.sd ** 2 * ahead + scoreModel.testError ** 2;
}

function sectionInterval(centre: number, half: number, score: number): Interval {
  return including(score, clampSection(floorToStep(centre - half)), clampSection(ceilToStep(centre + half)));
}

/** The total's interval never says more than the sections' intervals allow. */
function totalInterval(centre: number, half: number, total: number, math: Interval, rw: Interval): Interval {
  const low = Math.max(floorToStep(centre - half), math.low + rw.low);
  const high = Math.min(ceilToStep(centre + half), math.high + rw.high);
  return including(total, low, high);
}

const including = (point: number, low: number, high: number): Interval => ({
  low: Math.min(low, point),
  high: Math.max(high, point),
});
