import { masteryThresholds } from '../../../domain/base/bkt-parameters.js';
import { classConstants } from '../../../domain/classes/class-constants.js';
import { formatCompact, formatNumber, formatRange } from '../../../lab/report/format.js';
import { computeToday, toLocalDate, toLocalDay } from './school-days.js';

export { formatCompact, formatNumber, formatRange };

export const missingText = '–';

const formatNullable =
  <Value = number>(format: (value: Value) => string) =>
  (value: Value | null | undefined): string =>
    value === null || value === undefined ? missingText : format(value);

/** Shows 0 % and 100 % only for exact values. */
export const formatPercent = formatNullable((share) => {
  if (share > 0 && share < 0.005) return '<1 %';
  if (share >= 0.995 && share < 1) return '>99 %';
  return `${Math.round(100 * share)} %`;
});
/** For example "48 to 74 %". */
export const formatPercentRange = (low: number | null, high: number | null): string =>
  low === null || high === null
    ? missingText
    : `${formatPercent(low).replace(' %', '')} to ${formatPercent(high)}`;

/** Never rounds a lower share up to a threshold. */
const formatUpTo = (...thresholds: readonly number[]) =>
  formatNullable((share) => {
    const next = Math.min(...thresholds.filter((threshold) => share < threshold));
    return formatPercent(Math.min(share, next - 0.01));
  });
/** Below the threshold of a mastered skill, at most 94 %. */
export const formatMastery = formatUpTo(masteryThresholds.mastery);
/** Expected accuracy on a skill: at most 59 % if a learner struggles, and 74 % if the skill is not mastered. */
export const formatSkillAccuracy = formatUpTo(classConstants.struggling.below, masteryThresholds.accuracy);
/** Rounds down, so that a chance below a limit never reads like the limit. Never 0 % or 100 %. */
export const formatChance = formatNullable((chance) => {
  if (chance < 0.01) return '<1 %';
  // 100 * 0.29 is below 29.
  return chance > 0.99 ? '>99 %' : `${Math.floor(100 * chance + 1e-9)} %`;
});
export const formatPoints = formatNullable((change) => formatSigned(Math.round(100 * change)));
/** With one digit after the point. */
export const formatFinePoints = formatNullable((change) => formatSigned(Number((100 * change).toFixed(1))));
export const formatDecimal = (digits: number) => formatNullable((value) => value.toFixed(digits));
export const formatInteger = formatNullable((value) => formatNumber(Math.round(value)));

/** Counts code points, so that no character is split. */
export function truncate(name: string, maxLength: number): string {
  const characters = [...name];
  return characters.length <= maxLength ? name : `${characters.slice(0, maxLength - 1).join('')}…`;
}

export const formatSigned = (value: number): string =>
  value > 0 ? `+${value}` : value < 0 ? `−${-value}` : '0';

const createFormat = (style: Intl.DateTimeFormatOptions) => {
  const format = new Intl.DateTimeFormat('en-GB', { ...style, timeZone: 'UTC' });
  return formatNullable((time: string) => format.format(toLocalDate(time)));
};
/** @param time RFC 3339, or a local day YYYY-MM-DD */
export const formatDay = createFormat({ dateStyle: 'medium' });
export const formatDayTime = createFormat({ dateStyle: 'medium', timeStyle: 'short' });
export const formatClock = createFormat({ timeStyle: 'medium' });

/** Counts local days, as the status of a learner does. */
export function formatDaysAgo(time: string): string {
  const days = computeToday() - toLocalDay(time);
  return days <= 0 ? 'today' : days === 1 ? 'yesterday' : `${formatNumber(days)} days ago`;
}

export const pluralize = (count: number, singular: string, pluralForm = `${singular}s`): string =>
  `${formatNumber(count)} ${count === 1 ? singular : pluralForm}`;
