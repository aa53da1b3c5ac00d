import { getCalendar } from '../../domain/base/calendar.js';
import { parseNumber } from './values.js';

/** Units of numeric times, or the order of day and month in dates such as 3/4/2026. */
export const timeFormats = ['auto', 's', 'ms', 'us', 'mdy', 'dmy'] as const;
export type TimeFormat = (typeof timeFormats)[number];

const unitsPerSecond: Readonly<Partial<Record<TimeFormat, number>>> = { s: 1, ms: 1e3, us: 1e6 };

/** In seconds, 1e11 would be in the year 5138. */
const guessUnit = (number: number): number => (number < 1e11 ? 1 : number < 1e14 ? 1e3 : 1e6);

const clock = String.raw`(\d\d?):(\d\d)(?::(\d\d)(\.\d+)?)?`;
const zone = String.raw`(Z|UTC|[+-]\d\d(?::?\d\d)?)?`;
const yearFirst = new RegExp(String.raw`^(\d{4})[-/](\d\d?)[-/](\d\d?)(?:[T ]${clock}()\s*${zone})?$`, 'i');
const yearLast = new RegExp(
  String.raw`^(\d\d?)([/.-])(\d\d?)\2(\d{4})(?:,?[T ]\s*${clock}\s*([AP]M)?\s*${zone})?$`,
  'i',
);

/**
 * Parses times of an answer log to Unix milliseconds: a number since `startMs` in the unit of `format`, RFC 3339,
 * ISO 8601 without a zone, or a date with the year last. Null if the text is no time, or its day and month are ambiguous.
 * @param timeZone IANA name, for times without a zone
 */
export function createTimeParser(format: TimeFormat, timeZone: string, startMs: number) {
  const { offsetAt } = getCalendar(timeZone);
  const unit = unitsPerSecond[format];
  return (value: unknown): number | null => {
    const number = parseNumber(value);
    if (number !== null) return startMs + Math.round((1000 * number) / (unit ?? guessUnit(number)));
    const text = String(value).trim();
    const wall = parseDate(text, format);
    if (wall === null) return null;
    return wall.ms - (wall.zone === undefined ? offsetAt(wall.ms - offsetAt(wall.ms)) : parseZone(wall.zone));
  };
}

function parseDate(text: string, format: TimeFormat) {
  const [, year, month, day, ...rest] = yearFirst.exec(text) ?? [];
  if (year !== undefined) return buildTime(year, month, day, rest);
  const [, first, sign, second, lastYear, ...others] = yearLast.exec(text) ?? [];
  if (first === undefined) return null;
  if (format === 'mdy') return buildTime(lastYear, first, second, others);
  // Only Europe writes 31.12.2026.
  return format === 'dmy' || sign === '.' ? buildTime(lastYear, second, first, others) : null;
}

/** Milliseconds of the wall clock as if in UTC. Null for an impossible date. */
function buildTime(
  year: string | undefined,
  month: string | undefined,
  day: string | undefined,
  [hours = '0', minutes = '0', seconds = '0', fraction = '0', half, zone]: readonly (string | undefined)[],
) {
  const [y, m, d, h, min, s] = [year, month, day, hours, minutes, seconds].map(Number) as SixNumbers;
  const hour = half ? (h % 12) + (/^p/i.test(half) ? 12 : 0) : h;
  // RFC 3339 allows the leap second 60.
  const ms = Date.UTC(y, m - 1, d, hour, min, Math.min(s, 59), Math.trunc(1000 * Number(`0${fraction}`)));
  // A day that the month lacks becomes one of the next month.
  const isPossible = new Date(ms).getUTCMonth() === m - 1 && hour < 24 && min < 60 && s < 61;
  return isPossible ? { ms, zone } : null;
}

type SixNumbers = [number, number, number, number, number, number];

function parseZone(zone: string): number {
  const [, sign, hours, minutes = 0] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? [];
  return sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}
