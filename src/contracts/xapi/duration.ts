import { computeSum } from '../../lists.js';

const amountPattern = (unit: string): string => `(?:(\\d+(?:[.,]\\d+)?)${unit})?`;
const [weeks, years, months, days] = ['W', 'Y', 'M', 'D'].map(amountPattern);
const [hours, minutes, seconds] = ['H', 'M', 'S'].map(amountPattern);
const duration = new RegExp(
  `^P(?!$)(?:${weeks}|${years}${months}${days}(?:T(?=\\d)${hours}${minutes}${seconds})?)$`,
);
const unitSeconds = [604_800, 31_536_000, 2_592_000, 86_400, 3600, 60, 1];

/** Null: no ISO 8601 duration. Years have 365 days, months 30. */
export function parseDurationSeconds(text: string): number | null {
  const amounts = duration.exec(text)?.slice(1);
  if (amounts === undefined) return null;
  return computeSum(
    amounts.map((amount = '0', i) => Number(amount.replace(',', '.')) * (unitSeconds[i] ?? 0)),
  );
}
