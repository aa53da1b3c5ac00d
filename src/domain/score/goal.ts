import { dayOf } from '../base/days.js';
import { goalModel } from '../base/params.js';
import { clamp, round1 } from '../base/probability.js';
import type { LearnerState } from '../tracing/states.js';

/** What a learner wants to reach. */
export interface Goal {
  /** Total score, 400 to 1600 in tens. */
  readonly targetScore: number;
  /** Days until the goal's date, 0 where it has come or passed; null where it has none. */
  readonly daysLeft: number | null;
}

export interface GoalProgress {
  readonly targetScore: number;
  /** Smallest number of days whose predicted total meets the target; null if none within a year. */
  readonly daysToGoal: number | null;
  readonly progressPercent: number;
  readonly onTrack: boolean;
  /** Whether it is reached in time, or now, and forgotten by then. */
  readonly isLost: boolean;
}

/**
 * Whether the baseline total that progress is measured from is due: it is stored once, when the learner first has
 * answers enough for one.
 */
export const lacksBaseline = ({
  baselineTotal,
  attempts,
}: Pick<LearnerState, 'baselineTotal' | 'attempts'>): boolean =>
  baselineTotal === null && attempts >= goalModel.baselineAnswers;

/** The first version of the formulas whose totals can be compared with today's. */
export const totalsSince = 4;

/** Whether a row has a baseline that counts. @param modelVersion that it was counted under */
export const tellsBaseline = ({ modelVersion }: { readonly modelVersion: number }): boolean =>
  modelVersion >= totalsSince;

/** The goal of a learner who has set none: a round hundred points above the baseline. */
export function defaultGoal(baselineTotal: number | null): Goal {
  const base = baselineTotal ?? goalModel.defaultBaseline;
  return { targetScore: clamp(50 * Math.ceil(base / 50) + 100, 500, 1600), daysLeft: null };
}

/**
 * @param targetDate YYYY-MM-DD in UTC; null: none
 * @param now Unix milliseconds
 */
export const daysUntil = (targetDate: string | null, now: number): number | null =>
  targetDate === null ? null : Math.max(0, dayOf(Date.parse(targetDate)) - dayOf(now));

/** Whether the goal's date has passed. */
export const isOver = (targetDate: string | null, now: number): boolean =>
  targetDate !== null && dayOf(Date.parse(targetDate)) < dayOf(now);

/** Days that a forecast of the goal looks ahead: until its date, or a year. */
export const horizonOf = ({ daysLeft }: Pick<Goal, 'daysLeft'>): number =>
  Math.min(daysLeft ?? goalModel.horizonDays, goalModel.horizonDays);

/** Totals that a goal is held against. */
export interface Trajectory {
  readonly current: number;
  /** At the goal's horizon. */
  readonly inTime: number;
  /** Smallest number of days whose predicted total meets the target; null: none. */
  readonly daysToGoal: number | null;
}

/** Where the learner stands against a goal (science notes 6.6): one that is reached and lost again is not on track. */
export function trackGoal(
  { targetScore, daysLeft }: Goal,
  baselineTotal: number | null,
  { current, inTime, daysToGoal }: Trajectory,
): GoalProgress {
  const isReached = daysToGoal !== null && daysToGoal <= horizonOf({ daysLeft });
  return {
    targetScore,
    daysToGoal,
    progressPercent: progress(targetScore, baselineTotal ?? goalModel.defaultBaseline, current),
    onTrack: isReached && inTime >= targetScore,
    isLost: isReached && inTime < targetScore,
  };
}

function progress(target: number, base: number, current: number): number {
  if (current >= target) return 100;
  if (target <= base) return 0;
  return round1(100 * clamp((current - base) / (target - base), 0, 1));
}
