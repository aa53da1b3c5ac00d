/** How much a learner practises: answers by UTC day, over the last days only. */
import { activityModel } from '../base/params.js';
import { type PerSection, sections } from '../base/types.js';

const { days } = activityModel;

/**
 * Answers of the last days. Counts are in halves, for an answer on a skill without a section counts half in each;
 * the newest day comes first, math before reading and writing.
 */
export interface Activity {
  /** Newest day with an answer, UTC days since 1970; -1 before the first. */
  readonly day: number;
  /** 14 days of math, then 14 of reading and writing; each count stops at 65,535. */
  readonly halves: Uint16Array;
}

const maxHalves = 65_535;

export const newActivity: Activity = { day: -1, halves: new Uint16Array(sections.length * days) };

/**
 * Counts an answer on its day; one on a day that has left the window changes nothing.
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
  for (let section = 0; section < sections.length; section++) {
    const start = section * days;
    moved.set(halves.subarray(start, start + days - by), start + by);
  }
  return moved;
}

/** Practice of one section over the last 14 days. */
export interface Practice {
  /** Answers per day. */
  readonly rate: number;
  /** Days with an answer. */
  readonly activeDays: number;
}

const noPractice: Practice = { rate: 0, activeDays: 0 };

/**
 * What the learner did in the 14 days up to today, by section. Days that are ahead of today (a clock may be) count
 * as today.
 *
 * @param today UTC day since 1970
 */
export function practiceOf({ day, halves }: Activity, today: number): PerSection<Practice> {
  const gone = Math.max(0, today - day);
  if (gone >= days || day < 0) return { math: noPractice, rw: noPractice };
  const of = (section: number): Practice => {
    let [sum, activeDays] = [0, 0];
    for (let i = section * days; i < (section + 1) * days - gone; i++) {
      const count = halves[i] as number;
      sum += count;
      if (count > 0) activeDays += 1;
    }
    return { rate: sum / (2 * days), activeDays };
  };
  return { math: of(0), rw: of(1) };
}

/**
 * Practice that is taken to go on: as much as in the last 14 days, on as many of them; of a learner whose first answer is
 * younger, the days before it count as partly active where the section was practised at all.
 *
 * @param attempts answers that the learner ever gave
 */
export function assumedPractice(activity: Activity, attempts: number, today: number): PerSection<Practice> {
  const { math, rw } = practiceOf(activity, today);
  const unknown = activityModel.unknownDay * unknownDays(activity, attempts, today);
  const assumed = ({ rate, activeDays }: Practice): Practice => ({
    rate,
    activeDays: activeDays === 0 ? 0 : activeDays + unknown,
  });
  return { math: assumed(math), rw: assumed(rw) };
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
