/** Goals, and the baseline that progress towards them is measured from (science notes 6.6). */

import { dayOf } from '../base/days.js';
import { normalCdf } from '../base/normal.js';
import { goalModel, scoreModel } from '../base/params.js';
import { clamp, round1 } from '../base/probability.js';
import type { LearnerState } from '../tracing/states.js';
import type { Forecast } from './forecast.js';
import type { ScoreForecast } from './score.js';
import type { ForecastSubject } from './standing.js';

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

/** Whether the baseline is due: it is stored once, when the learner first has answers enough. */
export const lacksBaseline = ({
  baselineTotal,
  attempts,
}: Pick<LearnerState, 'baselineTotal' | 'attempts'>): boolean =>
  baselineTotal === null && attempts >= goalModel.baselineAnswers;

/**
 * @param targetDate YYYY-MM-DD in UTC; null: none
 * @param now Unix milliseconds
 */
export const daysUntil = (targetDate: string | null, now: number): number | null =>
  targetDate === null ? null : Math.max(0, dayOf(Date.parse(targetDate)) - dayOf(now));

/** Whether the goal's date has passed. */
export const isOver = (targetDate: string | null, now: number): boolean =>
  targetDate !== null && dayOf(Date.parse(targetDate)) < dayOf(now);

/** Days that a forecast of the goal looks ahead: until its date, at most and by default a year. */
export const horizonOf = (targetDate: string | null, now: number): number =>
  Math.min(daysUntil(targetDate, now) ?? goalModel.horizonDays, goalModel.horizonDays);

/** Where a learner stands against a goal. */
export interface GoalOutlook extends GoalSetting {
  /** False for the default goal. */
  readonly isSet: boolean;
  /** Smallest number of days whose predicted total meets the target; null if none does within a year. */
  readonly daysToGoal: number | null;
  readonly progressPercent: number;
  /** Reached within the horizon, and still at its end. */
  readonly onTrack: boolean;
  /** Reached within the horizon, and forgotten by its end. */
  readonly isLost: boolean;
  /** Of a total at least the target's at the horizon. */
  readonly probability: number;
}

/** @param set null: none was set, a default holds */
export function goalOutlook(
  { learner, now }: ForecastSubject,
  forecast: Forecast,
  set: GoalSetting | null,
): GoalOutlook {
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
    onTrack: isReached && isKept,
    isLost: isReached && !isKept,
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
