import { parseDay } from '../base/calendar.js';
import { goalConstants } from '../base/score-constants.js';
import type { LearnerState } from '../tracing/learner-states.js';

export interface GoalSetting {
  /** 400 to 1600, in steps of 10. */
  readonly targetScore: number;
  /** Local day, YYYY-MM-DD, may be past. */
  readonly targetDate: string | null;
}

export const goalStatuses = ['none', 'on_track', 'at_risk', 'unlikely', 'reached', 'expired'] as const;
export type GoalStatus = (typeof goalStatuses)[number];

export interface TrackedGoal extends GoalSetting {
  /** At the last forecast; null for a new goal. */
  readonly status: GoalStatus | null;
}

export interface StoredGoal extends TrackedGoal {
  /** Unix milliseconds. Increases with every change. */
  readonly updatedAt: number;
}

export const isBaselineDue = ({
  baselineTotal,
  attempts,
}: Pick<LearnerState, 'baselineTotal' | 'attempts'>): boolean =>
  baselineTotal === null && attempts >= goalConstants.baselineAnswers;

/** @param today local day since 1970 */
export const countDaysUntil = (targetDate: string | null, today: number): number | null =>
  targetDate === null ? null : Math.max(0, parseDay(targetDate) - today);

/** @param today local day since 1970 */
export const isDatePast = (targetDate: string | null, today: number): boolean =>
  targetDate !== null && parseDay(targetDate) < today;

/** Days to the target date, at most a year; a year without a date. */
export const computeHorizon = (targetDate: string | null, today: number): number =>
  Math.min(countDaysUntil(targetDate, today) ?? goalConstants.horizonDays, goalConstants.horizonDays);

/** The previous status shifts the limits, so that small changes of a forecast do not change it. */
export function computeGoalStatus(
  { targetScore, targetDate, status: previous }: TrackedGoal,
  currentTotal: number,
  probability: number,
  today: number,
): GoalStatus {
  const { unlikely, alertMargin } = goalConstants;
  const isKept = previous === 'reached' && currentTotal >= targetScore - alertMargin;
  if (isKept || currentTotal >= targetScore) return 'reached';
  if (isDatePast(targetDate, today)) return 'expired';
  if (probability < (previous === 'unlikely' ? unlikely.kept : unlikely.below)) return 'unlikely';
  return probability >= findOnTrackLimit(previous) ? 'on_track' : 'at_risk';
}

function findOnTrackLimit(previous: GoalStatus | null): number {
  const { from, kept, again } = goalConstants.onTrack;
  if (previous === 'on_track') return kept;
  return previous === 'at_risk' || previous === 'unlikely' ? again : from;
}

export interface GoalStanding extends StoredGoal {
  readonly status: GoalStatus;
  /** Local day of the forecast, since 1970. */
  readonly today: number;
  /** There are enough answers for an alert. */
  readonly hasBaseline: boolean;
  readonly currentTotal: number;
  /** At the target date, or in a year without a date. */
  readonly predictedTotal: number;
  readonly probability: number;
  readonly onTrack: boolean;
}

/** Alerts of the goal set at `updatedAt`. An alert ends when its total is `alertMargin` on the other side of the target. */
export interface GoalAlerts {
  readonly updatedAt: number;
  readonly reached: boolean;
  readonly atRisk: boolean;
}

type GoalChange = 'goal.reached' | 'goal.at_risk';

/** Near 1600 no recovery is possible, so `goal.at_risk` is raised once. */
export function updateAlerts(previous: GoalAlerts | null, standing: GoalStanding): GoalAlerts {
  const { updatedAt, targetScore, currentTotal, predictedTotal, onTrack } = standing;
  const { reached = false, atRisk = false } = previous ?? {};
  return {
    updatedAt,
    reached:
      currentTotal >= targetScore || (reached && currentTotal > targetScore - goalConstants.alertMargin),
    atRisk: !onTrack || (atRisk && predictedTotal < targetScore + goalConstants.alertMargin),
  };
}

/** @param before null for a new goal: existing conditions raise no alert */
export function detectGoalChanges(before: GoalAlerts | null, after: GoalAlerts): GoalChange[] {
  if (before === null) return [];
  const changes: GoalChange[] = [];
  if (after.reached && !before.reached) changes.push('goal.reached');
  if (after.atRisk && !before.atRisk) changes.push('goal.at_risk');
  return changes;
}
