/** How a learner's mastery moves: from day to day, out of daily sums of answers, and its momentum now. */

import { dayMs, dayOf } from '../base/days.js';
import { activityModel, momentumModel, velocityModel } from '../base/params.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import { closeDay, type Momentum, momentumOf } from '../tracing/momentum.js';
import type { LearnerState, SkillState } from '../tracing/states.js';
import { meanMastery, type PractisedSkill, practise, practisedSkills } from './skill-view.js';
import { type Slope, theilSen } from './theil-sen.js';

/** Answers of one learner on one skill on one day. */
export interface SkillDay {
  readonly skillId: string;
  /** UTC day since 1970; the day before the window stands for all days before it. */
  readonly day: number;
  readonly attempts: number;
  readonly correct: number;
  /** Distinct days with a right answer: 0 or 1, or more where several days are one. */
  readonly correctDays: number;
  /** Right after the last answer. */
  readonly mastery: number;
  /** Unix milliseconds. */
  readonly lastAttemptAt: number;
}

/** An active day of the learner. */
export interface Closing {
  readonly day: number;
  readonly attempts: number;
  readonly correct: number;
  /** Weighted mean mastery at its close, 0 to 1; null where no skill had enough answers by then. */
  readonly mastery: number | null;
}

/** The window of n days is today, a UTC day since 1970, and the n - 1 days before it. */
export const firstDayOf = (days: number, today: number): number => today - days + 1;

/**
 * Mastery at the close of each day with answers, oldest first: of all skills that had at least 5 attempts by then,
 * after forgetting, weighted by the catalogue. A day that is not over closes now.
 *
 * Yields after each day, for a caller who has others to serve: a day takes as long as there are skills.
 *
 * @param rows in any order, one for each skill and day
 * @param from first day of the window
 * @param now Unix milliseconds
 */
export function* closingSeries(
  rows: readonly SkillDay[],
  model: TenantModel,
  from: number,
  now: number,
): Generator<undefined, Closing[]> {
  const skills = new Map<string, PractisedSkill>();
  const series: Closing[] = [];
  for (const [day, ofDay] of byDay(rows)) {
    for (const row of ofDay) addRow(skills, row, model);
    if (day < from) continue;
    const mastery = meanMastery(skills, Math.min((day + 1) * dayMs, now));
    series.push({ day, attempts: sum(ofDay, 'attempts'), correct: sum(ofDay, 'correct'), mastery });
    yield;
  }
  return series;
}

function byDay(rows: readonly SkillDay[]): [number, SkillDay[]][] {
  const days = new Map<number, SkillDay[]>();
  for (const row of rows) {
    const ofDay = days.get(row.day);
    if (ofDay === undefined) days.set(row.day, [row]);
    else ofDay.push(row);
  }
  return [...days].sort(([a], [b]) => a - b);
}

function addRow(skills: Map<string, PractisedSkill>, row: SkillDay, model: TenantModel): void {
  const before = skills.get(row.skillId)?.state ?? { attempts: 0, correctDays: 0 };
  const attempts = before.attempts + row.attempts;
  practise(
    skills,
    row.skillId,
    { ...row, attempts, correctDays: before.correctDays + row.correctDays },
    model,
  );
}

const sum = (days: readonly Pick<SkillDay, 'attempts' | 'correct'>[], of: 'attempts' | 'correct'): number =>
  days.reduce((total, day) => total + day[of], 0);

/** How mastery moved, and how much was practised, over a window. */
interface Progress {
  /** Active days of the window, oldest first. */
  readonly series: readonly Closing[];
  /** Change of mastery per day; null below 5 days with a value. */
  readonly velocity: Slope | null;
  readonly answersPerDay: number;
  /** Share of right answers, 0 to 1; null without an answer. */
  readonly accuracy: number | null;
}

/**
 * @param closings active days up to today, oldest first, none missing of the window
 * @param days length of the window
 * @param today UTC day since 1970
 */
export function progressOver(closings: readonly Closing[], days: number, today: number): Progress {
  const from = firstDayOf(days, today);
  const series = closings.filter(({ day }) => day >= from);
  const attempts = sum(series, 'attempts');
  return {
    series,
    velocity: theilSen(
      series.flatMap(({ day, mastery }) => (mastery === null ? [] : [{ time: day, value: mastery }])),
    ),
    answersPerDay: attempts / days,
    accuracy: attempts === 0 ? null : sum(series, 'correct') / attempts,
  };
}

/** Days that have to be known for windows of that many days and of the fixed lengths. */
export const daysToRead = (days: number): number => Math.max(days, velocityModel.longDays);

/**
 * Momentum now. The state knows a day only once a later one with answers has begun, so the last one is closed here, and
 * after it idle days up to today for what was forgotten since; of many idle days only some. Who gave no answer in the last
 * 14 days is not building, however low the long average of a short history still is.
 *
 * @param skills all of the learner's
 * @param now Unix milliseconds
 * @returns null where no skill has enough answers
 */
export function momentumNow(
  { activity, momentum }: Pick<LearnerState, 'activity' | 'momentum'>,
  skills: ReadonlyMap<string, SkillState>,
  model: TenantModel,
  now: number,
): Momentum | null {
  const practised = practisedSkills(skills, model);
  const today = dayOf(now);
  let state = momentum;
  for (const day of daysToClose(activity.day, today)) {
    const mastery = meanMastery(practised, Math.min((day + 1) * dayMs, now));
    if (mastery === null) return null;
    state = closeDay(state, day, mastery);
  }
  const found = momentumOf(state);
  const isIdle = today - activity.day >= activityModel.days;
  return found?.label === 'building' && isIdle ? { ...found, label: 'steady' } : found;
}

/** The last day with answers, some between it and today, and today. */
function daysToClose(last: number, today: number): number[] {
  const step = Math.max(1, Math.ceil((today - last) / momentumModel.idleClosings));
  const days = [last];
  for (let day = last + step; day < today; day += step) days.push(day);
  return today > last ? [...days, today] : days;
}
