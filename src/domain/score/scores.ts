/** Scores and intervals (science notes 6.2 and 6.4). */
import type { Range } from '../base/bkt-parameters.js';
import { clamp, type PerSection, perSection, type Section } from '../base/common.js';
import { normalQuantile } from '../base/normal.js';
import { scoreModel } from '../base/score-constants.js';
import { type AbilityEstimate, type ForecastSubject, standingOf } from './assessment.js';

const { step } = scoreModel;
const floorToStep = (score: number): number => step * Math.floor(score / step);
const ceilToStep = (score: number): number => step * Math.ceil(score / step);
const roundToStep = (score: number): number => step * Math.floor(score / step + 0.5);

const clampSection = (score: number): number => clamp(score, scoreModel.sectionMin, scoreModel.sectionMax);

const centreOf = (section: Section, theta: number): number =>
  clampSection(scoreModel.mean[section] + scoreModel.sd * theta);

export interface Scores extends PerSection<number> {
  readonly total: number;
}

export function scoresOf(theta: PerSection<number>): Scores {
  const math = clampSection(roundToStep(centreOf('math', theta.math)));
  const rw = clampSection(roundToStep(centreOf('rw', theta.rw)));
  return { math, rw, total: math + rw };
}

export const currentTotal = (subject: ForecastSubject): number =>
  scoresOf(standingOf(subject).estimate.theta).total;

export type ScoreForecast = ReturnType<typeof forecastScores>;

/** @param swing largest change by gains or losses alone @param days 0 to 365 @param level 0.5 to 0.99 */
export function forecastScores(
  estimate: AbilityEstimate,
  change: PerSection<number>,
  swing: PerSection<number>,
  days: number,
  level: number,
) {
  const theta = perSection((section) => estimate.theta[section] + change[section]);
  const scores = scoresOf(theta);
  const centre = perSection((section) => centreOf(section, theta[section]));
  const variance = perSection((section) =>
    sectionVariance(estimate.variance[section] + estimate.distrust[section], swing[section], days),
  );
  const drift = scoreModel.driftCorrelation * scoreModel.driftPerDay * days;
  const shared = Math.sqrt(estimate.distrust.math * estimate.distrust.rw);
  const covariance = scoreModel.sd ** 2 * (estimate.covariance + shared + drift);
  const sd = perSection((section) => Math.sqrt(variance[section]));
  const totalSd = Math.sqrt(variance.math + variance.rw + 2 * covariance);
  const totalCentre = centre.math + centre.rw;
  const z = normalQuantile(0.5 + level / 2);
  const { math, rw } = perSection((section) => {
    const [low, high] = [centre[section] - z * sd[section], centre[section] + z * sd[section]];
    return including(scores[section], clampSection(floorToStep(low)), clampSection(ceilToStep(high)));
  });
  // The total's interval is within the sum of the sections' intervals.
  const low = Math.max(floorToStep(totalCentre - z * totalSd), math.low + rw.low);
  const high = Math.min(ceilToStep(totalCentre + z * totalSd), math.high + rw.high);
  const intervals = { math, rw, total: including(scores.total, low, high) };
  return { scores, intervals, totalCentre, totalSd, sd };
}

function sectionVariance(abilityVariance: number, swing: number, days: number): number {
  const ahead = abilityVariance + (0.5 * swing) ** 2 + scoreModel.driftPerDay * days;
  return scoreModel.sd ** 2 * ahead + scoreModel.testError ** 2;
}

const including = (point: number, low: number, high: number): Range => ({
  low: Math.min(low, point),
  high: Math.max(high, point),
});
