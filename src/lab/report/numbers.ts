/** Numbers and tables as commands and reports print them. */

/** With commas between thousands. */
export const grouped = (value: number): string => value.toLocaleString('en-US');

const compactFormat = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });

/** As short as an axis needs it: 12K, 3.4M. */
export const compact = (value: number): string => compactFormat.format(value);

/** @param to null: no end */
export const rangeText = (from: number, to: number | null): string =>
  to === null ? `${grouped(from)} or more` : `${grouped(from)} to ${grouped(to)}`;

/** A table whose first column is aligned left and whose others are aligned right. */
export function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const cell = (text: string, i: number): string =>
    i === 0 ? text.padEnd(widths[i] ?? 0) : text.padStart(widths[i] ?? 0);
  return rows.map((row) => `  ${row.map(cell).join('  ').trimEnd()}`).join('\n');
}

const jsonDigits = 6;

/** One line of JSON, its numbers with six decimals at most. */
export const roundedJson = (value: object): string =>
  JSON.stringify(value, (_, part) => (typeof part === 'number' ? Number(part.toFixed(jsonDigits)) : part));
