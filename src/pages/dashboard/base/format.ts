import { formatCompact, formatNumber, formatRange } from '../../../lab/report/format.js';

export { formatCompact, formatNumber, formatRange };

export const missingText = '–';

const formatNullable =
  (format: (value: number) => string) =>
  (value: number | null | undefined): string =>
    value === null || value === undefined ? missingText : format(value);

/** Shows 0 % and 100 % only for exact values. */
export const formatPercent = formatNullable((share) => {
  if (share > 0 && share < 0.005) return '<1 %';
  if (share > 0.995 && share < 1) return '>99 %';
  return `${Math.round(100 * share)} %`;
});
/** For example "48 to 74 %". */
export const formatPercentRange = (low: number | null, high: number | null): string =>
  low === null || high === null ? missingText : `${Math.round(100 * low)} to ${formatPercent(high)}`;
export const formatPoints = formatNullable((change) => formatSigned(Math.round(100 * change)));
export const formatDecimal = (digits: number) => formatNullable((value) => value.toFixed(digits));
export const formatInteger = formatNullable((value) => formatNumber(Math.round(value)));

/** Counts code points, so that no character is split. */
export function truncate(name: string, maxLength: number): string {
  const characters = [...name];
  return characters.length <= maxLength ? name : `${characters.slice(0, maxLength - 1).join('')}…`;
}

export const formatSigned = (value: number): string =>
  value > 0 ? `+${value}` : value < 0 ? `−${-value}` : '0';

const utcDayFormat = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' });
const utcTimeFormat = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'short',
  timeZone: 'UTC',
});

/** @param time RFC 3339, or a UTC day */
export const formatDay = (time: string | null | undefined): string =>
  time === null || time === undefined ? missingText : utcDayFormat.format(new Date(time));
export const formatDayTime = (time: string | null | undefined): string =>
  time === null || time === undefined ? missingText : utcTimeFormat.format(new Date(time));

export const countDaysSince = (time: string): number =>
  Math.floor((Date.now() - Date.parse(time)) / 86_400_000);

export const pluralize = (count: number, singular: string, pluralForm = `${singular}s`): string =>
  `${formatNumber(count)} ${count === 1 ? singular : pluralForm}`;
