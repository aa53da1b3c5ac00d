import { dayOf } from '../base/common.js';
import { goalModel } from '../base/score-constants.js';
import type { LearnerState } from '../tracing/states.js';

export interface GoalSetting {
  /** 400 to 1600, in steps of 10. */
  readonly targetScore: number;
  /** UTC date, may be past. */
  readonly targetDate: string | null;
}

export interface StoredGoal extends GoalSetting {
  /** Unix milliseconds. Increases with every change. */
  readonly updatedAt: number;
}

export const lacksBaseline = ({
  baselineTotal,
  attempts,
}: Pick<LearnerState, 'baselineTotal' | 'attempts'>): boolean =>
  baselineTotal === null && attempts >= goalModel.baselineAnswers;

export const daysUntil = (targetDate: string | null, now: number): number | null =>
  targetDate === null ? null : Math.max(0, dayOf(Date.parse(targetDate)) - dayOf(now));

export const isOver = (targetDate: string | null, now: number): boolean =>
  targetDate !== null && dayOf(Date.parse(targetDate)) < dayOf(now);

/** At most a year, also without a date. */
export const horizonOf = (targetDate: string | null, now: number): number =>
  Math.min(daysUntil(targetDate, now) ?? goalModel.horizonDays, goalModel.horizonDays);

export interface GoalStanding extends StoredGoal {
  readonly currentTotal: number;
  /** At the target date, or in a year without a date. */
  readonly predictedTotal: number;
  readonly probability: number;
  readonly onTrack: boolean;
}

/** Alerts of the goal set at `updatedAt`. A recovery by `alertMargin` points clears an alert. */
export interface GoalAlerts {
  readonly updatedAt: number;
  readonly reached: boolean;
  readonly atRisk: boolean;
}

type GoalChange = 'goal.reached' | 'goal.at_risk';

/** Near 1600 no recovery is possible, so `goal.at_risk` is raised once. */
export function alertsAfter(before: GoalAlerts | null, standing: GoalStanding): GoalAlerts {
  const { updatedAt, targetScore, currentTotal, predictedTotal, onTrack } = standing;
  const { reached = false, atRisk = false } = before ?? {};
  return {
    updatedAt,
    reached: currentTotal >= targetScore || (reached && currentTotal > targetScore - goalModel.alertMargin),
    atRisk: !onTrack || (atRisk && predictedTotal < targetScore + goalModel.alertMargin),
  };
}

/** @param before null for a new goal: existing conditions raise no alert */
export function goalChangesOf(before: GoalAlerts | null, after: GoalAlerts): GoalChange[] {
  if (before === null) return [];
  const changes: GoalChange[] = [];
  if (after.reached && !before.reached) changes.push('goal.reached');
  if (after.atRisk && !before.atRisk) changes.push('goal.at_risk');
  return changes;
}
