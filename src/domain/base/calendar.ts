/**
 * Days of a time zone. Intl takes microseconds per call, so offsets are cached by week. In the time zone
 * database, no zone has two transitions within a week since 1970.
 */
import { dayMs, formatDate } from './common.js';

export interface Calendar {
  /** Local time minus UTC, in milliseconds. @param ms Unix milliseconds */
  offsetAt(ms: number): number;
  /** Local day since 1970-01-01, at least 0. @param ms Unix milliseconds */
  toDay(ms: number): number;
  /** First Unix millisecond of the day, or of the next one if the zone skipped the day. */
  startOfDay(day: number): number;
}

export const utc = 'UTC';

/** YYYY-MM-DD. @param day since 1970-01-01 */
export const formatDay = (day: number): string => formatDate(day * dayMs);

/** Days since 1970-01-01. @param text YYYY-MM-DD */
export const parseDay = (text: string): number => Date.parse(text) / dayMs;

const weekMs = 7 * dayMs;
/** Two centuries. */
const maxWeeks = 10_000;

const calendars = new Map<string, Calendar>();

/** @param timeZone IANA name @throws RangeError for an unknown zone */
export function getCalendar(timeZone: string): Calendar {
  const found = calendars.get(timeZone);
  if (found !== undefined) return found;
  const created = createCalendar(timeZone === utc ? () => 0 : createOffsetCache(timeZone));
  calendars.set(timeZone, created);
  return created;
}

/** Offsets of the years 2000 to 2059. @returns pairs of start and offset, in seconds */
export function listOffsets({ offsetAt }: Calendar): (readonly [start: number, offset: number])[] {
  const found: (readonly [number, number])[] = [];
  for (let from = Date.UTC(2000), ms = from; ms < Date.UTC(2060); ms += weekMs) {
    if (found.length > 0 && offsetAt(from) === offsetAt(ms)) continue;
    const start = found.length === 0 ? from : findChange(offsetAt, ms - weekMs, ms);
    found.push([start / 1000, offsetAt(ms) / 1000]);
    from = ms;
  }
  return found;
}

/** Between two times with different offsets. @returns the first millisecond with the later offset */
function findChange(offsetAt: Calendar['offsetAt'], from: number, to: number): number {
  let [low, high] = [from, to];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle) === offsetAt(from)) low = middle;
    else high = middle;
  }
  return high;
}

function createCalendar(offsetAt: Calendar['offsetAt']): Calendar {
  const toDay = (ms: number): number => Math.max(0, Math.floor((ms + offsetAt(ms)) / dayMs));
  return {
    offsetAt,
    toDay,
    // Midnight may be missing or repeated: compare the offsets before and after.
    startOfDay: (day) => {
      const starts = [-1, 1].map((side) => day * dayMs - offsetAt((day + side) * dayMs));
      return Math.min(...starts.filter((ms) => toDay(ms) >= day));
    },
  };
}

function createOffsetCache(timeZone: string): Calendar['offsetAt'] {
  const readOffset = createOffsetReader(timeZone);
  const weeks = new Map<number, { before: number; changesAt: number; after: number }>();
  return (ms) => {
    const week = Math.floor(ms / weekMs);
    let found = weeks.get(week);
    if (found === undefined) {
      if (weeks.size === maxWeeks) weeks.clear();
      found = readWeek(readOffset, week * weekMs);
      weeks.set(week, found);
    }
    return ms < found.changesAt ? found.before : found.after;
  };
}

function readWeek(readOffset: Calendar['offsetAt'], from: number) {
  const [before, after] = [readOffset(from), readOffset(from + weekMs)];
  return { before, changesAt: before === after ? from : findChange(readOffset, from, from + weekMs), after };
}

/** Intl formats the offset as "GMT-08:00", with seconds if there are any, or as "GMT". */
function createOffsetReader(timeZone: string): Calendar['offsetAt'] {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset', year: 'numeric' });
  return (ms) => {
    const [, sign, hours, minutes, seconds] = /([+-])(\d\d):(\d\d):?(\d\d)?$/.exec(format.format(ms)) ?? [];
    const size = 3600 * Number(hours ?? 0) + 60 * Number(minutes ?? 0) + Number(seconds ?? 0);
    return (sign === '-' ? -1000 : 1000) * size;
  };
}
