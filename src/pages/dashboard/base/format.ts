import { formatCompact, formatNumber, formatRange } from '../../../lab/report/format.js';

export { formatCompact as compact, formatNumber as grouped, formatRange as rangeText };

export const none = '–';

const shown =
  (format: (value: number) => string) =>
  (value: number | null | undefined): string =>
    value === null || value === undefined ? none : format(value);

/** Shows 0 % and 100 % only for exact values. */
export const percent = shown((share) => {
  if (share > 0 && share < 0.005) return '<1 %';
  if (share > 0.995 && share < 1) return '>99 %';
  return `${Math.round(100 * share)} %`;
});
/** For example "48 to 74 %". */
export const percentRange = (low: number | null, high: number | null): string =>
  low === null || high === null ? none : `${Math.round(100 * low)} to ${percent(high)}`;
export const points = shown((change) => signed(Math.round(100 * change)));
export const decimal = (digits: number) => shown((value) => value.toFixed(digits));
export const whole = shown((value) => formatNumber(Math.round(value)));

/** Counts code points, so that no character is split. */
export function shortened(name: string, most: number): string {
  const characters = [...name];
  return characters.length <= most ? name : `${characters.slice(0, most - 1).join('')}…`;
}

export const signed = (value: number): string => (value > 0 ? `+${value}` : value < 0 ? `−${-value}` : '0');

const dayFormat = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
const timeFormat = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'short',
  timeZone: 'UTC',
});

/** @param time RFC 3339, or a UTC day */
export const day = (time: string | null | undefined): string =>
  time === null || time === undefined ? none : dayFormat.format(new Date(time));
export const dayAndTime = (time: string | null | undefined): string =>
  time === null || time === undefined ? none : timeFormat.format(new Date(time));

export const daysSince = (time: string): number => Math.floor((Date.now() - Date.parse(time)) / 86_400_000);

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatNumber(count)} ${count === 1 ? one : many}`;
