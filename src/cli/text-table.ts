/** A table whose first column is aligned left and whose others are aligned right. */
export function aligned(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const cell = (text: string, i: number): string =>
    i === 0 ? text.padEnd(widths[i] ?? 0) : text.padStart(widths[i] ?? 0);
  return rows.map((row) => `  ${row.map(cell).join('  ').trimEnd()}`).join('\n');
}
