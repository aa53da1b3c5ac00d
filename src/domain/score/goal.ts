import { dayOf } from '../base/common.js';
import { goalModel } from '../base/params.js';
import type { LearnerState } from '../tracing/states.js';

export interface GoalSetting {
  /** Total score, 400 to 1600 in tens. */
  readonly targetScore: number;
  /** YYYY-MM-DD in UTC, perhaps passed by now; null: no date. */
  readonly targetDate: string | null;
}

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

/** A learner's goal with the forecast that decides its alerts. */
export interface GoalStanding extends StoredGoal {
  readonly currentTotal: number;
  /** At the target date, where none is set in `goalModel.horizonDays` days. */
  readonly predictedTotal: number;
  /** Of a total at least the target's then, 0 to 1. */
  readonly probability: number;
  readonly onTrack: boolean;
}

/** Which alerts are raised (each once until the total has come back by `goalModel.alertMargin` points), of the goal that was set at this time (Unix milliseconds). */
export interface GoalAlerts {
  readonly updatedAt: number;
  readonly reached: boolean;
  readonly atRisk: boolean;
}

type GoalChange = 'goal.reached' | 'goal.at_risk';

/** At a target near 1600 a total cannot come back from risk far enough: there `goal.at_risk` is raised once. */
export function alertsAfter(before: GoalAlerts | null, standing: GoalStanding): GoalAlerts {
  const { updatedAt, targetScore, currentTotal, predictedTotal, onTrack } = standing;
  const { reached = false, atRisk = false } = before ?? {};
  return {
    updatedAt,
    reached: currentTotal >= targetScore || (reached && currentTotal > targetScore - goalModel.alertMargin),
    atRisk: !onTrack || (atRisk && predictedTotal < targetScore + goalModel.alertMargin),
  };
}

/** @param before null: nothing is known of this goal, and what holds already is no news */
export function goalChangesOf(before: GoalAlerts | null, after: GoalAlerts): GoalChange[] {
  if (before === null) return [];
  const changes: GoalChange[] = [];
  if (after.reached && !before.reached) changes.push('goal.reached');
  if (after.atRisk && !before.atRisk) changes.push('goal.at_risk');
  return changes;
}
