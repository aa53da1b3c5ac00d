import { QuerySelect } from './query-select.jsx';

const periods = [7, 28, 90, 365];

/** Whole local days, today included. */
export const parseDays = (text: string | undefined): number =>
  periods.find((period) => String(period) === text) ?? 28;

interface PeriodSelectProps {
  readonly days: number;
  /** Query parameter of the URL. */
  readonly parameter?: string;
}

export const PeriodSelect = ({ days, parameter = 'days' }: PeriodSelectProps) => (
  <QuerySelect
    {...{ label: 'Period', parameter, value: days }}
    options={periods.map((period) => [period, `last ${period} days`])}
  />
);
