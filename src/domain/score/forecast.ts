/** A learner's scores from today on, under a habit of practice. */

import { goalModel } from '../base/params.js';
import { perSection } from '../base/types.js';
import type { SkillView } from '../learner/skill-view.js';
import { abilityChanges } from './ability-changes.js';
import type { Habit } from './habit.js';
import { type AbilityOutlook, forecastScores, type ScoreForecast, type Scores, scoresOf } from './score.js';
import type { ForecastSubject, Standing } from './standing.js';

/** Scores of one learner for every day within a year, under one habit. */
export interface Forecast {
  readonly current: Scores;
  /** @param days 0 to 365 */
  scoresIn(days: number): Scores;
  /** @param level of the intervals, 0.5 to 0.99 */
  forecastIn(days: number, level: number): ScoreForecast;
  /** Smallest number of days, 0 to 365, whose predicted total meets the target; null if none does. */
  daysTo(target: number): number | null;
}

/** @param added skills beside the learner's own that the habit brings in: so far they are as ability predicts */
export function forecastUnder(
  subject: ForecastSubject,
  standing: Standing,
  habit: Habit,
  added: readonly SkillView[] = [],
): Forecast {
  const views = added.length === 0 ? subject.views : [...subject.views, ...added];
  const { estimate } = standing;
  const { theta } = estimate;
  const changes = abilityChanges(views, standing, habit, subject.now);
  const current = scoresOf(theta);
  const bestScores = (from: number, to: number): Scores => {
    const { math, rw } = changes(from, to);
    return scoresOf({ math: theta.math + math, rw: theta.rw + rw });
  };
  const bestTotal = (from: number, to: number): number => bestScores(from, to).total;
  const outlook = (days: number): AbilityOutlook => {
    const [lost, gained] = [changes(days, 0), changes(0, days)];
    return {
      change: changes(days, days),
      swing: perSection((section) => Math.max(-lost[section], gained[section])),
    };
  };
  return {
    current,
    scoresIn: (days) => bestScores(days, days),
    forecastIn: (days, level) => forecastScores(estimate, outlook(days), days, level),
    daysTo: (target) => (current.total >= target ? 0 : firstDay(bestTotal, target, 1, goalModel.horizonDays)),
  };
}

/**
 * Forgetting and practice pull a total both ways, so a plain binary search could miss the first day. A range is skipped
 * where even the least forgetting and the most practice in it do not reach the target.
 */
function firstDay(
  bestTotal: (from: number, to: number) => number,
  target: number,
  from: number,
  to: number,
): number | null {
  if (bestTotal(from, to) < target) return null;
  if (from === to) return from;
  const middle = (from + to) >> 1;
  return firstDay(bestTotal, target, from, middle) ?? firstDay(bestTotal, target, middle + 1, to);
}
