import { type Calendar, getCalendar } from '../base/calendar.js';
import { normalQuantile } from '../base/normal-distribution.js';
import type { TenantModel } from '../catalogue/tenant-model.js';
import type { LearnerState, SkillState } from '../tracing/learner-states.js';
import { closeDay, computeMomentum, type Momentum } from '../tracing/momentum.js';
import { activityConstants, momentumConstants } from '../tracing/tracing-constants.js';
import { velocityConstants } from './learner-constants.js';
import {
  addPractisedSkill,
  collectPractisedSkills,
  computeMeanMastery,
  type PractisedSkill,
} from './skill-view.js';

type Point = { readonly time: number; readonly value: number };

/**
 * Theil-Sen slope (Sen, JASA 63, 1968; science notes 4). Computes n^2 / 2 slopes. @returns null below 5
 * points
 */
export function computeTheilSen(points: readonly Point[]) {
  const n = points.length;
  if (n < velocityConstants.minDays) return null;
  const slopes = pairwiseSlopes(points).sort();
  const last = slopes.length - 1;
  const at = (rank: number): number => slopes[Math.min(last, Math.max(0, rank))] as number;
  const width = intervalZ * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18);
  return {
    slope: (at(Math.floor(last / 2)) + at(Math.ceil(last / 2))) / 2,
    low: at(Math.floor((slopes.length - width) / 2)),
    high: at(Math.ceil((slopes.length + width) / 2)),
  };
}

export type Slope = NonNullable<ReturnType<typeof computeTheilSen>>;

const intervalZ = normalQuantile((1 + velocityConstants.level) / 2);

function pairwiseSlopes(points: readonly Point[]): Float64Array {
  const slopes = new Float64Array((points.length * (points.length - 1)) / 2);
  let next = 0;
  for (const [i, a] of points.entries())
    for (const b of points.slice(i + 1)) slopes[next++] = (b.value - a.value) / (b.time - a.time);
  return slopes;
}

export interface SkillDay {
  readonly skillId: string;
  /** Local day since 1970. The first combines all days before the window. */
  readonly day: number;
  /** On the skill. */
  readonly attempts: number;
  /** Sums over skills count each answer once, under its first skill. */
  readonly answers: number;
  /** Of `answers`. */
  readonly correct: number;
  /** Distinct days with a correct answer; more than 1 only if days are combined. */
  readonly correctDays: number;
  readonly mastery: number;
  /** Unix milliseconds. */
  readonly lastAttemptAt: number;
}

export interface DayClosing extends Pick<SkillDay, 'day' | 'answers' | 'correct'> {
  /** Null if no skill has enough answers. */
  readonly mastery: number | null;
}

export const computeFirstDay = (days: number, today: number): number => today - days + 1;

/** Yields after each day. */
export function* buildClosingSeries(
  rows: readonly SkillDay[],
  model: TenantModel,
  { calendar, from, now }: { readonly calendar: Calendar; readonly from: number; readonly now: number },
): Generator<undefined, DayClosing[]> {
  const skills = new Map<string, PractisedSkill>();
  const series: DayClosing[] = [];
  for (const [day, dayRows] of groupByDay(rows)) {
    for (const row of dayRows) addSkillDay(skills, row, model);
    if (day < from) continue;
    const mastery = computeMeanMastery(skills, Math.min(calendar.startOfDay(day + 1), now));
    series.push({
      day,
      answers: sumField(dayRows, 'answers'),
      correct: sumField(dayRows, 'correct'),
      mastery,
    });
    yield;
  }
  return series;
}

function groupByDay(rows: readonly SkillDay[]): [number, SkillDay[]][] {
  const days = new Map<number, SkillDay[]>();
  for (const row of rows) {
    const dayRows = days.get(row.day);
    if (dayRows === undefined) days.set(row.day, [row]);
    else dayRows.push(row);
  }
  return [...days].sort(([a], [b]) => a - b);
}

function addSkillDay(skills: Map<string, PractisedSkill>, row: SkillDay, model: TenantModel): void {
  const before = skills.get(row.skillId)?.state;
  const attempts = (before?.attempts ?? 0) + row.attempts;
  const correctDays = (before?.correctDays ?? 0) + row.correctDays;
  addPractisedSkill(skills, row.skillId, { ...row, attempts, correctDays }, model);
}

const sumField = (
  days: readonly Pick<SkillDay, 'answers' | 'correct'>[],
  field: 'answers' | 'correct',
): number => days.reduce((total, day) => total + day[field], 0);

/** @param closings active days, oldest first */
export function computeProgress(closings: readonly DayClosing[], days: number, today: number) {
  const series = closings.filter(({ day }) => day >= computeFirstDay(days, today));
  const answers = sumField(series, 'answers');
  const points = series.flatMap(({ day, mastery }) =>
    mastery === null ? [] : { time: day, value: mastery },
  );
  return {
    series,
    velocity: computeTheilSen(points),
    answersPerDay: answers / days,
    accuracy: answers === 0 ? null : sumField(series, 'correct') / answers,
  };
}

export const computeReadDays = (days: number): number => Math.max(days, velocityConstants.longDays);

/** Closes the last active day and the idle days since. @returns null if no skill has enough answers */
export function computeCurrentMomentum(
  { activity, momentum, timeZone }: Pick<LearnerState, 'activity' | 'momentum' | 'timeZone'>,
  skills: ReadonlyMap<string, SkillState>,
  model: TenantModel,
  now: number,
): Momentum | null {
  const practised = collectPractisedSkills(skills, model);
  const calendar = getCalendar(timeZone);
  const today = calendar.toDay(now);
  let state = momentum;
  for (const day of listClosingDays(activity.day, today)) {
    const mastery = computeMeanMastery(practised, Math.min(calendar.startOfDay(day + 1), now));
    if (mastery === null) return null;
    state = closeDay(state, day, mastery);
  }
  const found = computeMomentum(state);
  const isIdle = today - activity.day >= activityConstants.days;
  return found?.label === 'building' && isIdle ? { ...found, label: 'steady' } : found;
}

function listClosingDays(last: number, today: number): number[] {
  const step = Math.max(1, Math.ceil((today - last) / momentumConstants.idleClosings));
  const days = [last];
  for (let day = last + step; day < today; day += step) days.push(day);
  return today > last ? [...days, today] : days;
}
