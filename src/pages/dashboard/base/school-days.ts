/** Days in the time zone of the tenant. */
import { type Calendar, getCalendar, utc } from '../../../domain/base/calendar.js';

let calendar: Calendar = getCalendar(utc);
let timeZone = utc;

/** Call it after sign-in, before a page is shown. @param zone IANA name */
export function setTimeZone(zone: string): void {
  calendar = getCalendar(zone);
  timeZone = zone;
}

export const getTimeZone = (): string => timeZone;

/** Local day since 1970. @param time RFC 3339 */
export const toLocalDay = (time: string): number => calendar.toDay(Date.parse(time));

export const computeToday = (): number => calendar.toDay(Date.now());

/** @param time RFC 3339; null: never */
export const countIdleDays = (time: string | null): number | null =>
  time === null ? null : computeToday() - toLocalDay(time);
