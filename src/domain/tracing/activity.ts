/** How much a learner practises: answers by UTC day, over the last 14 days only. */
import { activityModel } from '../base/params.js';
import { type PerSection, perSection, sections } from '../base/types.js';

const { days } = activityModel;

export interface Activity {
  /** Newest day with an answer, UTC days since 1970; -1 before the first. */
  readonly day: number;
  /**
   * Half answers, for an answer on a skill without a section counts half in each: 14 days of math, the newest first, then
   * 14 of reading and writing. Each count stops at 65,535.
   */
  readonly halves: Uint16Array;
}

const maxHalves = 65_535;

export const newActivity: Activity = { day: -1, halves: new Uint16Array(sections.length * days) };

/**
 * Counts an answer on its day; a day before the window changes nothing.
 *
 * @param share how much of the answer belongs to each section: 0, .5 or 1
 */
export function countActivity(activity: Activity, day: number, share: PerSection<number>): Activity {
  const age = activity.day - day;
  if (age >= days) return activity;
  const halves = age < 0 ? shifted(activity.halves, -age) : activity.halves.slice();
  const place = Math.max(0, age);
  add(halves, place, 2 * share.math);
  add(halves, days + place, 2 * share.rw);
  return { day: Math.max(activity.day, day), halves };
}

function add(halves: Uint16Array, place: number, count: number): void {
  halves[place] = Math.min((halves[place] as number) + count, maxHalves);
}

/** The same counts, seen from a later day. */
function shifted(halves: Uint16Array, by: number): Uint16Array {
  const moved = new Uint16Array(halves.length);
  if (by >= days) return moved;
  for (let start = 0; start < halves.length; start += days)
    moved.set(halves.subarray(start, start + days - by), start + by);
  return moved;
}

/** Practice of one section over the last 14 days. */
export interface Practice {
  /** Answers per day. */
  readonly rate: number;
  /** Days with an answer. */
  readonly activeDays: number;
}

/**
 * Practice in the 14 days up to today, a UTC day since 1970. Days ahead of today (clocks differ) count as today.
 */
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

/**
 * Practice that is taken to go on: as much as in the last 14 days, on as many of them. For a learner whose first answer is
 * younger, days before it count as partly active where the section was practised at all.
 *
 * @param attempts answers that the learner ever gave
 */
export function assumedPractice(activity: Activity, attempts: number, today: number): PerSection<Practice> {
  const practice = practiceOf(activity, today);
  const unknown = activityModel.unknownDay * unknownDays(activity, attempts, today);
  return perSection((section) => {
    const { rate, activeDays } = practice[section];
    return { rate, activeDays: activeDays === 0 ? 0 : activeDays + unknown };
  });
}

/** Days of the last 14 before the learner's first answer; 0 where some answers are older, or late. */
function unknownDays({ day, halves }: Activity, attempts: number, today: number): number {
  let [answers, oldest] = [0, 0];
  for (const [i, count] of halves.entries()) {
    answers += count / 2;
    if (count > 0) oldest = Math.max(oldest, i % days);
  }
  return answers < attempts ? 0 : Math.max(0, days - 1 - oldest - Math.max(0, today - day));
}
