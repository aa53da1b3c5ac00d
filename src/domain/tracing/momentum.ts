import { momentumModel } from '../base/params.js';

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
