export const formatNumber = (value: number): string => value.toLocaleString('en-US');

export const formatSigned = (value: number, digits = 3): string =>
  `${value < 0 ? '\u2212' : '+'}${Math.abs(value).toFixed(digits)}`;

const compactFormat = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });

/** For example 12K or 3.4M. */
export const formatCompact = (value: number): string => compactFormat.format(value);

/** @param to null: no end */
export const formatRange = (from: number, to: number | null): string =>
  to === null ? `${formatNumber(from)} or more` : `${formatNumber(from)} to ${formatNumber(to)}`;

/** @param otherColumns alignment of all but the first column */
export function formatTableLines(
  rows: readonly (readonly string[])[],
  otherColumns: 'padStart' | 'padEnd' = 'padStart',
): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const cell = (text: string, i: number): string => text[i === 0 ? 'padEnd' : otherColumns](widths[i] ?? 0);
  return rows.map((row) => row.map(cell).join('  ').trimEnd());
}

export const formatTable = (rows: readonly (readonly string[])[]): string =>
  formatTableLines(rows)
    .map((line) => `  ${line}`)
    .join('\n');

/**
 * Keys in snake_case: old_coverage_80.
 * @param decimals of all numbers; default: 3 of `seconds`
 */
export const formatJsonLine = (result: object, decimals?: number): string =>
  JSON.stringify(result, (key, value: unknown) => {
    const digits = decimals ?? (key === 'seconds' ? 3 : undefined);
    if (typeof value === 'number') return digits === undefined ? value : Number(value.toFixed(digits));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [toSnakeCase(name), part]));
  });

const toSnakeCase = (name: string): string =>
  name.replace(/(?<=[a-z])(?:[A-Z]|\d+)/g, (part) => `_${part.toLowerCase()}`);
