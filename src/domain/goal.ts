import { goalModel } from './params.js';
import { clamp, round1 } from './probability.js';

export interface Goal {
  readonly targetScore: number;
  /** Days until the goal's date; null where it has none. */
  readonly daysLeft: number | null;
}

export interface GoalProgress {
  readonly targetScore: number;
  /** Smallest number of days whose predicted total meets the target; null if none within a year. */
  readonly daysToGoal: number | null;
  readonly progressPercent: number;
  readonly onTrack: boolean;
}

/** The goal of a learner who has set none: a round hundred points above the baseline. */
export function defaultGoal(baselineTotal: number | null): Goal {
  const base = baselineTotal ?? goalModel.defaultBaseline;
  return { targetScore: clamp(50 * Math.ceil(base / 50) + 100, 500, 1600), daysLeft: null };
}

/**
 * Where the learner stands against a goal (science notes 6.6).
 *
 * @param predictedTotal rounded total forecast for a number of days ahead, so that asking for those days
 * reproduces the answer
 */
export function trackGoal(
  goal: Goal,
  baselineTotal: number | null,
  currentTotal: number,
  predictedTotal: (days: number) => number,
): GoalProgress {
  const daysToGoal = firstDayReaching(goal.targetScore, predictedTotal);
  return {
    targetScore: goal.targetScore,
    daysToGoal,
    progressPercent: progress(goal.targetScore, baselineTotal ?? goalModel.defaultBaseline, currentTotal),
    onTrack: daysToGoal !== null && daysToGoal <= (goal.daysLeft ?? goalModel.horizonDays),
  };
}

function firstDayReaching(target: number, predictedTotal: (days: number) => number): number | null {
  for (let day = 0; day <= goalModel.horizonDays; day++) {
    if (predictedTotal(day) >= target) return day;
  }
  return null;
}

function progress(target: number, base: number, current: number): number {
  if (current >= target) return 100;
  if (target <= base) return 0;
  return round1(100 * clamp((current - base) / (target - base), 0, 1));
}
