import { dayMs, dayOf } from '../base/common.js';
import { normalQuantile } from '../base/normal.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import { closeDay, type Momentum, momentumOf } from '../tracing/momentum.js';
import type { LearnerState, SkillState } from '../tracing/states.js';
import { activityModel, momentumModel } from '../tracing/tracing-constants.js';
import { velocityModel } from './learner-constants.js';
import { meanMastery, type PractisedSkill, practise, practisedSkills } from './skill-view.js';

type Point = { readonly time: number; readonly value: number };

/**
 * Theil-Sen slope (Sen, JASA 63, 1968; science notes 4). Computes n^2 / 2 slopes. @returns null below 5
 * points
 */
export function theilSen(points: readonly Point[]) {
  const n = points.length;
  if (n < velocityModel.minDays) return null;
  const slopes = pairwiseSlopes(points).sort();
  const last = slopes.length - 1;
  const at = (rank: number): number => slopes[Math.min(last, Math.max(0, rank))] as number;
  const width = upper * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
  return {
    slope: (at(Math.floor(last / 2)) + at(Math.ceil(last / 2))) / 2,
    low: at(Math.floor((slopes.length - width) / 2)),
    high: at(Math.ceil((slopes.length + width) / 2)),
  };
}

export type Slope = NonNullable<ReturnType<typeof theilSen>>;

const upper = normalQuantile((1 + velocityModel.level) / 2);

function pairwiseSlopes(points: readonly Point[]): Float64Array {
  const slopes = new Float64Array((points.length * (points.length - 1)) / 2);
  let next = 0;
  for (const [i, a] of points.entries())
    for (const b of points.slice(i + 1)) slopes[next++] = (b.value - a.value) / (b.time - a.time);
  return slopes;
}

export interface SkillDay {
  readonly skillId: string;
  /** UTC day since 1970. The first combines all days before the window. */
  readonly day: number;
  readonly attempts: number;
  readonly correct: number;
  readonly correctDays: number;
  readonly mastery: number;
  /** UTC day since 1970. The first row combines all days before the window. */
  readonly lastAttemptAt: number;
}

export interface Closing extends Pick<SkillDay, 'day' | 'attempts' | 'correct'> {
  /** Null if no skill has enough answers. */
  readonly mastery: number | null;
}

export const firstDayOf = (days: number, today: number): number => today - days + 1;

/** Yields after each day. */
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
  const before = skills.get(row.skillId)?.state;
  const attempts = (before?.attempts ?? 0) + row.attempts;
  const correctDays = (before?.correctDays ?? 0) + row.correctDays;
  practise(skills, row.skillId, { ...row, attempts, correctDays }, model);
}

const sum = (days: readonly Pick<SkillDay, 'attempts' | 'correct'>[], of: 'attempts' | 'correct'): number =>
  days.reduce((total, day) => total + day[of], 0);

/** @param closings active days, oldest first */
export function progressOver(closings: readonly Closing[], days: number, today: number) {
  const series = closings.filter(({ day }) => day >= firstDayOf(days, today));
  const attempts = sum(series, 'attempts');
  const points = series.flatMap(({ day, mastery }) =>
    mastery === null ? [] : { time: day, value: mastery },
  );
  return {
    series,
    velocity: theilSen(points),
    answersPerDay: attempts / days,
    accuracy: attempts === 0 ? null : sum(series, 'correct') / attempts,
  };
}

export const daysToRead = (days: number): number => Math.max(days, velocityModel.longDays);

/** Closes the last active day and the idle days since. @returns null if no skill has enough answers */
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

function daysToClose(last: number, today: number): number[] {
  const step = Math.max(1, Math.ceil((today - last) / momentumModel.idleClosings));
  const days = [last];
  for (let day = last + step; day < today; day += step) days.push(day);
  return today > last ? [...days, today] : days;
}
