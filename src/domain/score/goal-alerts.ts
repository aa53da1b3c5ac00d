/** Alerts of a goal, each raised once until the total has come back by `goalModel.alertMargin` points. */
import { goalModel } from '../base/params.js';
import type { StoredGoal } from './goal.js';

/** A learner's goal with the forecast that decides its alerts. */
export interface GoalStanding extends StoredGoal {
  readonly currentTotal: number;
  /** At the target date, where none is set in `goalModel.horizonDays` days. */
  readonly predictedTotal: number;
  /** Of a total at least the target's then, 0 to 1. */
  readonly probability: number;
  readonly onTrack: boolean;
}

/** Which alerts are raised, of the goal that was set at this time (Unix milliseconds). */
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
