import { mapSections, type PerSection, sections } from '../base/common.js';
import { activityConstants } from './tracing-constants.js';

const { days } = activityConstants;

const emptyHalfAnswers: Uint16Array = new Uint16Array(sections.length * days);
const maxHalfAnswers = 65_535;

export const newActivity = {
  /** Last local day since 1970; -1 if none. */
  day: -1,
  /** Half answers per day, newest first: 14 days of math, then of rw. */
  halfAnswers: emptyHalfAnswers,
};

export type Activity = Readonly<typeof newActivity>;

/** Ignores days before the window. @param share 0, .5 or 1 per section */
export function countActivity(activity: Activity, day: number, share: PerSection<number>): Activity {
  const age = activity.day - day;
  if (age >= days) return activity;
  const halfAnswers = age < 0 ? shiftDays(activity.halfAnswers, -age) : activity.halfAnswers.slice();
  for (const [i, section] of sections.entries()) {
    const index = i * days + Math.max(0, age);
    halfAnswers[index] = Math.min((halfAnswers[index] as number) + 2 * share[section], maxHalfAnswers);
  }
  return { day: Math.max(activity.day, day), halfAnswers };
}

function shiftDays(halves: Uint16Array, by: number): Uint16Array {
  const moved = new Uint16Array(halves.length);
  if (by >= days) return moved;
  for (let start = 0; start < halves.length; start += days)
    moved.set(halves.subarray(start, start + days - by), start + by);
  return moved;
}

export interface Practice {
  /** Answers per day. */
  readonly rate: number;
  readonly activeDays: number;
}

export function computePractice({ day, halfAnswers }: Activity, today: number): PerSection<Practice> {
  const passedDays = day < 0 ? days : Math.max(0, today - day);
  return mapSections((section) => {
    const start = sections.indexOf(section) * days;
    let [sum, activeDays] = [0, 0];
    for (let i = start; i < start + days - passedDays; i++) {
      const count = halfAnswers[i] as number;
      sum += count;
      if (count > 0) activeDays += 1;
    }
    return { rate: sum / (2 * days), activeDays };
  });
}

/** Assumes that recent practice continues. @param attempts total, to detect answers before the window */
export function estimatePractice(activity: Activity, attempts: number, today: number): PerSection<Practice> {
  const practice = computePractice(activity, today);
  const unknown = activityConstants.unknownDay * countUnknownDays(activity, attempts, today);
  return mapSections((section) => {
    const { rate, activeDays } = practice[section];
    return { rate, activeDays: activeDays === 0 ? 0 : activeDays + unknown };
  });
}

/** Days of the window before the first answer; 0 if some answers are older or late. */
function countUnknownDays({ day, halfAnswers }: Activity, attempts: number, today: number): number {
  let [answers, oldest] = [0, 0];
  for (const [i, count] of halfAnswers.entries()) {
    answers += count / 2;
    if (count > 0) oldest = Math.max(oldest, i % days);
  }
  return answers < attempts ? 0 : Math.max(0, days - 1 - oldest - Math.max(0, today - day));
}
