/** Momentum: whether a learner's mastery has been rising or falling lately, by two moving averages. */

import { momentumModel } from '../base/params.js';

/** Moving averages of the mean mastery at the close of each day with answers. */
export const newMomentum = {
  /** Last closed day, UTC days since 1970; -1 before the first. */
  day: -1,
  /** Over about 3 days and over about 14. */
  short: 0,
  long: 0,
};

export type MomentumState = Readonly<typeof newMomentum>;

/**
 * The averages after one more day: after a longer gap the new value weighs more. The first day sets both.
 *
 * @param day at whose close the value holds, UTC days since 1970; one that is not later changes nothing
 * @param mastery weighted mean of the learner's effective masteries then, 0 to 1
 */
export function closeDay(state: MomentumState, day: number, mastery: number): MomentumState {
  if (state.day < 0) return { day, short: mastery, long: mastery };
  const gap = day - state.day;
  if (gap <= 0) return state;
  const approach = (from: number, halfLife: number): number =>
    from + (1 - 2 ** (-gap / halfLife)) * (mastery - from);
  return {
    day,
    short: approach(state.short, momentumModel.shortDays),
    long: approach(state.long, momentumModel.longDays),
  };
}

export interface Momentum {
  /** Short minus long average: above 0 where mastery has been rising. */
  readonly value: number;
  readonly label: 'building' | 'steady' | 'fading';
}

/** Null before the first day. */
export function momentumOf({ day, short, long }: MomentumState): Momentum | null {
  if (day < 0) return null;
  const value = short - long;
  const { threshold } = momentumModel;
  return { value, label: value > threshold ? 'building' : value < -threshold ? 'fading' : 'steady' };
}
