/** Scores and intervals (science notes 6.2 and 6.4). */
import type { Range } from '../base/bkt-parameters.js';
import { clamp, mapSections, type PerSection, type Section } from '../base/common.js';
import { normalQuantile } from '../base/normal-distribution.js';
import { scoreConstants } from '../base/score-constants.js';
import { type AbilityEstimate, assessLearner, type ForecastSubject } from './assessment.js';

const { step } = scoreConstants;
const floorToStep = (score: number): number => step * Math.floor(score / step);
const ceilToStep = (score: number): number => step * Math.ceil(score / step);
const roundToStep = (score: number): number => step * Math.floor(score / step + 0.5);

const clampSection = (score: number): number =>
  clamp(score, scoreConstants.sectionMin, scoreConstants.sectionMax);

const computeCentre = (section: Section, theta: number): number =>
  clampSection(scoreConstants.mean[section] + scoreConstants.sd * theta);

export interface Scores extends PerSection<number> {
  readonly total: number;
}

export function computeScores(theta: PerSection<number>): Scores {
  const math = clampSection(roundToStep(computeCentre('math', theta.math)));
  const rw = clampSection(roundToStep(computeCentre('rw', theta.rw)));
  return { math, rw, total: math + rw };
}

export const computeCurrentTotal = (subject: ForecastSubject): number =>
  computeScores(assessLearner(subject).estimate.theta).total;

export type ScoreForecast = ReturnType<typeof forecastScores>;

/** @param swing largest change by gains or losses alone @param days 0 to 365 @param level 0.5 to 0.99 */
export function forecastScores(
  estimate: AbilityEstimate,
  change: PerSection<number>,
  swing: PerSection<number>,
  days: number,
  level: number,
) {
  const theta = mapSections((section) => estimate.theta[section] + change[section]);
  const scores = computeScores(theta);
  const centre = mapSections((section) => computeCentre(section, theta[section]));
  const variance = computeVariances(estimate, swing, days);
  const sd = mapSections((section) => Math.sqrt(variance[section]));
  const totalSd = Math.sqrt(variance.total);
  const totalCentre = centre.math + centre.rw;
  const z = normalQuantile(0.5 + level / 2);
  const { math, rw } = mapSections((section) => {
    const [low, high] = [centre[section] - z * sd[section], centre[section] + z * sd[section]];
    return includePoint(scores[section], clampSection(floorToStep(low)), clampSection(ceilToStep(high)));
  });
  // The total's interval is within the sum of the sections' intervals.
  const low = Math.max(floorToStep(totalCentre - z * totalSd), math.low + rw.low);
  const high = Math.min(ceilToStep(totalCentre + z * totalSd), math.high + rw.high);
  const intervals = { math, rw, total: includePoint(scores.total, low, high) };
  return { scores, intervals, totalCentre, totalSd, sd, swing };
}

export function computeVariances(estimate: AbilityEstimate, swing: PerSection<number>, days: number) {
  const { math, rw } = mapSections((section) =>
    computeSectionVariance(estimate.variance[section] + estimate.distrust[section], swing[section], days),
  );
  const drift = scoreConstants.driftCorrelation * scoreConstants.driftPerDay * days;
  const shared = Math.sqrt(estimate.distrust.math * estimate.distrust.rw);
  const covariance = scoreConstants.sd ** 2 * (estimate.covariance + shared + drift);
  return { math, rw, total: math + rw + 2 * covariance };
}

function computeSectionVariance(abilityVariance: number, swing: number, days: number): number {
  const ahead = abilityVariance + (0.5 * swing) ** 2 + scoreConstants.driftPerDay * days;
  return scoreConstants.sd ** 2 * ahead + scoreConstants.testError ** 2;
}

const includePoint = (point: number, low: number, high: number): Range => ({
  low: Math.min(low, point),
  high: Math.max(high, point),
});
