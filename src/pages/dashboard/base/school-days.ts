/** Days and times in the time zone of the tenant. */
import { type Calendar, getCalendar, utc } from '../../../domain/base/calendar.js';

let calendar: Calendar = getCalendar(utc);
let timeZone = utc;

/** Call it after sign-in, before a page is shown. An old browser may not know the zone and shows UTC. */
export function setTimeZone(zone: string): void {
  try {
    calendar = getCalendar(zone);
    timeZone = zone;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    setTimeZone(utc);
  }
}

export const getTimeZone = (): string => timeZone;

/** The UTC fields of this date are the local time. @param time RFC 3339, or a local day YYYY-MM-DD */
export function toLocalDate(time: string): Date {
  const ms = Date.parse(time);
  return new Date(time.length === 10 ? ms : ms + calendar.offsetAt(ms));
}

/** Local time with its offset, for files: 2026-11-01T01:30:00-07:00. @param time RFC 3339 */
export function formatLocalTime(time: string): string {
  const minutes = calendar.offsetAt(Date.parse(time)) / 60_000;
  const offset = new Date(Math.abs(minutes) * 60_000).toISOString().slice(11, 16);
  return `${toLocalDate(time).toISOString().slice(0, 19)}${minutes < 0 ? '-' : '+'}${offset}`;
}

/** Local day since 1970. @param time RFC 3339 */
export const toLocalDay = (time: string): number => calendar.toDay(Date.parse(time));

export const computeToday = (): number => calendar.toDay(Date.now());

/** @param time RFC 3339; null: never */
export const countIdleDays = (time: string | null): number | null =>
  time === null ? null : computeToday() - toLocalDay(time);
