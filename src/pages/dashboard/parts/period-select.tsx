import type { Route } from '../base/route.js';
import { QuerySelect } from './query-select.jsx';

const periods = [7, 28, 90, 365];

/** Whole UTC days, today included. */
export const readDays = ({ days }: Route['query']): number =>
  periods.find((period) => String(period) === days) ?? 28;

export const PeriodSelect = ({ days }: { readonly days: number }) => (
  <QuerySelect
    {...{ label: 'Period', parameter: 'days', value: days }}
    options={periods.map((period) => [period, `last ${period} days`])}
  />
);
