/** A learner's scores from today on, under a habit of practice; and goals, with the baseline of their progress. */
import { clamp, dayOf, perSection, round1 } from '../base/common.js';
import { normalCdf } from '../base/normal.js';
import { goalModel, scoreModel } from '../base/params.js';
import type { SkillView } from '../learner/skill-view.js';
import type { LearnerState } from '../tracing/states.js';
import { abilityChanges, type Habit } from './projection.js';
import { forecastScores, type ScoreForecast, type Scores, scoresOf } from './score.js';
import type { Standing } from './standing.js';

/** Scores of one learner for every day within a year, under one habit. */
export type Forecast = ReturnType<typeof forecastUnder>;

/** @param added skills beside the learner's own that the habit brings in: so far they are as ability predicts */
export function forecastUnder(standing: Standing, habit: Habit, added: readonly SkillView[] = []) {
  const { estimate, views } = standing;
  const { theta } = estimate;
  const changes = abilityChanges(standing, habit, added.length === 0 ? views : [...views, ...added]);
  const current = scoresOf(theta);
  const bestScores = (from: number, to: number): Scores => {
    const { math, rw } = changes(from, to);
    return scoresOf({ math: theta.math + math, rw: theta.rw + rw });
  };
  const bestTotal = (from: number, to: number): number => bestScores(from, to).total;
  return {
    current,
    /** @param days 0 to 365 */
    scoresIn: (days: number): Scores => bestScores(days, days),
    /** @param level of the intervals, 0.5 to 0.99 */
    forecastIn: (days: number, level: number): ScoreForecast => {
      const [lost, gained] = [changes(days, 0), changes(0, days)];
      const swing = perSection((section) => Math.max(-lost[section], gained[section]));
      return forecastScores(estimate, changes(days, days), swing, days, level);
    },
    /** Smallest number of days, 0 to 365, whose predicted total meets the target; null if none does. */
    daysTo: (target: number): number | null =>
      current.total >= target ? 0 : firstDay(bestTotal, target, 1, goalModel.horizonDays),
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

/** What a learner has set as a goal. */
export interface GoalSetting {
  /** Total score, 400 to 1600 in tens. */
  readonly targetScore: number;
  /** YYYY-MM-DD in UTC, perhaps passed by now; null: no date. */
  readonly targetDate: string | null;
}

/** A goal as it is kept. */
export interface StoredGoal extends GoalSetting {
  /** Unix milliseconds; grows with every change of the learner's goal. */
  readonly updatedAt: number;
}

/** Whether the baseline is due: it is stored once, when the learner first has answers enough (science notes 6.6). */
export const lacksBaseline = ({
  baselineTotal,
  attempts,
}: Pick<LearnerState, 'baselineTotal' | 'attempts'>): boolean =>
  baselineTotal === null && attempts >= goalModel.baselineAnswers;

export const daysUntil = (targetDate: string | null, now: number): number | null =>
  targetDate === null ? null : Math.max(0, dayOf(Date.parse(targetDate)) - dayOf(now));

export const isOver = (targetDate: string | null, now: number): boolean =>
  targetDate !== null && dayOf(Date.parse(targetDate)) < dayOf(now);

/** Days that a forecast of the goal looks ahead: until its date, at most and by default a year. */
export const horizonOf = (targetDate: string | null, now: number): number =>
  Math.min(daysUntil(targetDate, now) ?? goalModel.horizonDays, goalModel.horizonDays);

export type GoalOutlook = ReturnType<typeof goalOutlook>;

/** Where a learner stands against a goal. @param set null: none was set, a default holds */
export function goalOutlook({ learner, now }: Standing, forecast: Forecast, set: GoalSetting | null) {
  const base = learner.baselineTotal ?? goalModel.defaultBaseline;
  const { targetScore, targetDate } = set ?? { targetScore: defaultTarget(base), targetDate: null };
  const horizon = horizonOf(targetDate, now);
  const inTime = forecast.forecastIn(horizon, scoreModel.defaultLevel);
  const daysToGoal = forecast.daysTo(targetScore);
  const isReached = daysToGoal !== null && daysToGoal <= horizon;
  const isKept = inTime.scores.total >= targetScore;
  return {
    targetScore,
    targetDate,
    isSet: set !== null,
    daysToGoal,
    progressPercent: progress(targetScore, base, forecast.current.total),
    /** Reached within the horizon, and still at its end. */
    onTrack: isReached && isKept,
    /** Reached within the horizon, and forgotten by its end. */
    isLost: isReached && !isKept,
    /** Of a total at least the target's at the horizon. */
    probability: reachProbability(targetScore, inTime),
  };
}

/** A round hundred points above the baseline. */
const defaultTarget = (base: number): number => clamp(50 * Math.ceil(base / 50) + 100, 500, 1600);

function progress(target: number, base: number, current: number): number {
  if (current >= target) return 100;
  if (target <= base) return 0;
  return round1(100 * clamp((current - base) / (target - base), 0, 1));
}

/** Nobody misses the lowest score. */
const reachProbability = (target: number, { totalCentre, totalSd }: ScoreForecast): number =>
  target <= 2 * scoreModel.sectionMin ? 1 : 1 - normalCdf((target - totalCentre) / totalSd);
