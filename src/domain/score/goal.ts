/** Goals of learners, and the baseline of their progress. */
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
