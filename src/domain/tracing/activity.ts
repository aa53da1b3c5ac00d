import { type PerSection, perSection, sections } from '../base/common.js';
import { activityModel } from './tracing-constants.js';

const { days } = activityModel;

const noHalves: Uint16Array = new Uint16Array(sections.length * days);
const maxHalves = 65_535;

export const newActivity = {
  /** Last UTC day since 1970; -1 if none. */
  day: -1,
  /** Half answers per day, newest first: 14 days of math, then of rw. */
  halves: noHalves,
};

export type Activity = Readonly<typeof newActivity>;

/** Ignores days before the window. @param share 0, .5 or 1 per section */
export function countActivity(activity: Activity, day: number, share: PerSection<number>): Activity {
  const age = activity.day - day;
  if (age >= days) return activity;
  const halves = age < 0 ? shifted(activity.halves, -age) : activity.halves.slice();
  for (const [i, section] of sections.entries()) {
    const place = i * days + Math.max(0, age);
    halves[place] = Math.min((halves[place] as number) + 2 * share[section], maxHalves);
  }
  return { day: Math.max(activity.day, day), halves };
}

function shifted(halves: Uint16Array, by: number): Uint16Array {
  const moved = new Uint16Array(halves.length);
  if (by >= days) return moved;
  for (let start = 0; start < halves.length; start += days)
    moved.set(halves.subarray(start, start + days - by), start + by);
  return moved;
}

export interface Practice {
  readonly rate: number;
  readonly activeDays: number;
}

export function practiceOf({ day, halves }: Activity, today: number): PerSection<Practice> {
  const gone = day < 0 ? days : Math.max(0, today - day);
  return perSection((section) => {
    const start = sections.indexOf(section) * days;
    let [sum, activeDays] = [0, 0];
    for (let i = start; i < start + days - gone; i++) {
      const count = halves[i] as number;
      sum += count;
      if (count > 0) activeDays += 1;
    }
    return { rate: sum / (2 * days), activeDays };
  });
}

/** Assumes that recent practice continues. @param attempts total, to detect answers before the window */
export function assumedPractice(activity: Activity, attempts: number, today: number): PerSection<Practice> {
  const practice = practiceOf(activity, today);
  const unknown = activityModel.unknownDay * unknownDays(activity, attempts, today);
  return perSection((section) => {
    const { rate, activeDays } = practice[section];
    return { rate, activeDays: activeDays === 0 ? 0 : activeDays + unknown };
  });
}

function unknownDays({ day, halves }: Activity, attempts: number, today: number): number {
  let [answers, oldest] = [0, 0];
  for (const [i, count] of halves.entries()) {
    answers += count / 2;
    if (count > 0) oldest = Math.max(oldest, i % days);
  }
  return answers < attempts ? 0 : Math.max(0, days - 1 - oldest - Math.max(0, today - day));
}
