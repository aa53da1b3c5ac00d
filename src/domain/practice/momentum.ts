/** Momentum: whether a learner's mastery has been rising or falling lately, by two moving averages. */

import { activityModel, momentumModel } from '../base/params.js';
import type { LearnerState, SkillState } from '../base/types.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import { meanMastery, practisedSkills } from '../learner/skill-view.js';
import { dayMs, dayOf } from '../tracing/forgetting.js';

/** Moving averages of the mean mastery at the close of each day with answers. */
export interface MomentumState {
  /** Last closed day, UTC days since 1970; -1 before the first. */
  readonly day: number;
  /** Over about 3 days and over about 14. */
  readonly short: number;
  readonly long: number;
}

export const newMomentum: MomentumState = { day: -1, short: 0, long: 0 };

/**
 * The averages after one more day. They know time: a longer gap weighs the new value more. The first day sets both.
 *
 * @param day at whose close the value holds, UTC days since 1970; one that is not later changes nothing
 * @param mastery weighted mean of the learner's effective masteries then, 0 to 1
 */
export function closeDay(state: MomentumState, day: number, mastery: number): MomentumState {
  if (state.day < 0) return { day, short: mastery, long: mastery };
  const gap = day - state.day;
  if (gap <= 0) return state;
  const { shortDays, longDays } = momentumModel;
  return {
    day,
    short: approach(state.short, mastery, gap, shortDays),
    long: approach(state.long, mastery, gap, longDays),
  };
}

const approach = (from: number, to: number, days: number, halfLife: number): number =>
  from + (1 - 2 ** (-days / halfLife)) * (to - from);

export type MomentumLabel = 'building' | 'steady' | 'fading';

export interface Momentum {
  /** Short minus long average: above 0 where mastery has been rising. */
  readonly value: number;
  readonly label: MomentumLabel;
}

/** Null before the first day. */
export function momentumOf({ day, short, long }: MomentumState): Momentum | null {
  if (day < 0) return null;
  const value = short - long;
  const { threshold } = momentumModel;
  return { value, label: value > threshold ? 'building' : value < -threshold ? 'fading' : 'steady' };
}

/**
 * Momentum now. The state knows a day only once a later one with answers has begun, so the last one is closed here,
 * and after it idle days up to today for what was forgotten since; of many idle days only some. Without an answer in
 * the last 14 days nobody is building.
 *
 * @param skills all of the learner's
 * @param now Unix milliseconds
 * @returns null where no skill has answers enough
 */
export function momentumNow(
  { activity, momentum }: Pick<LearnerState, 'activity' | 'momentum'>,
  skills: ReadonlyMap<string, SkillState>,
  model: TenantModel,
  now: number,
): Momentum | null {
  const practised = practisedSkills(skills, model);
  let state = momentum;
  for (const day of daysToClose(activity.day, dayOf(now))) {
    const close = Math.min((day + 1) * dayMs, now);
    const mastery = meanMastery(practised, close);
    if (mastery === null) return null;
    state = closeDay(state, day, mastery);
  }
  return withoutPractice(momentumOf(state), dayOf(now) - activity.day);
}

/** The last day with answers, some between it and today, and today. */
function daysToClose(last: number, today: number): number[] {
  const step = Math.max(1, Math.ceil((today - last) / momentumModel.idleClosings));
  const days = [last];
  for (let day = last + step; day < today; day += step) days.push(day);
  return today > last ? [...days, today] : days;
}

/** Who has stopped is not building, however low the long average of a short history still is. */
function withoutPractice(momentum: Momentum | null, idleDays: number): Momentum | null {
  if (momentum?.label !== 'building' || idleDays < activityModel.days) return momentum;
  return { ...momentum, label: 'steady' };
}
