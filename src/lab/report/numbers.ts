/** Numbers as reports show them to people. */

/** With commas between thousands. */
export const grouped = (value: number): string => value.toLocaleString('en-US');

const compactFormat = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });

/** As short as an axis needs it: 12K, 3.4M. */
export const compact = (value: number): string => compactFormat.format(value);

/** @param to null: no end */
export const rangeText = (from: number, to: number | null): string =>
  to === null ? `${grouped(from)} or more` : `${grouped(from)} to ${grouped(to)}`;
