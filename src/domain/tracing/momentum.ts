import { momentumConstants } from './tracing-constants.js';

/** Moving averages of mean mastery at the end of active days. */
export const newMomentum = {
  /** Last closed local day since 1970; -1 if none. */
  day: -1,
  short: 0,
  long: 0,
};

export type MomentumState = Readonly<typeof newMomentum>;

/** A longer gap gives the new value more weight. */
export function closeDay(state: MomentumState, day: number, mastery: number): MomentumState {
  if (state.day < 0) return { day, short: mastery, long: mastery };
  const gap = day - state.day;
  if (gap <= 0) return state;
  const approach = (from: number, halfLife: number): number =>
    from + (1 - 2 ** (-gap / halfLife)) * (mastery - from);
  return {
    day,
    short: approach(state.short, momentumConstants.shortDays),
    long: approach(state.long, momentumConstants.longDays),
  };
}

export interface Momentum {
  readonly value: number;
  readonly label: 'building' | 'steady' | 'fading';
}

/** Positive if mastery has been rising; null before the first day. */
export function computeMomentum({ day, short, long }: MomentumState): Momentum | null {
  if (day < 0) return null;
  const value = short - long;
  const { threshold } = momentumConstants;
  return { value, label: value > threshold ? 'building' : value < -threshold ? 'fading' : 'steady' };
}
