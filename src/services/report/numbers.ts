/** Numbers as reports show them to people. */

/** With commas between thousands. */
export const grouped = (value: number): string => value.toLocaleString('en-US');

/** @param to null: no end */
export const rangeText = (from: number, to: number | null): string =>
  to === null ? `${grouped(from)} or more` : `${grouped(from)} to ${grouped(to)}`;
