/** Tables in Markdown on standard output: what these tests measure is wanted whether they pass or not. */
type Cell = string | number;

const cellOf = (cell: Cell): string =>
  typeof cell === 'string' ? cell : cell < 10 && !Number.isInteger(cell) ? cell.toFixed(1) : cell.toFixed(0);

const line = (cells: readonly Cell[]): string => `| ${cells.map(cellOf).join(' | ')} |\n`;

export function printTable(
  title: string,
  heads: readonly string[],
  rows: readonly (readonly Cell[])[],
): void {
  const all = [heads, heads.map(() => '---'), ...rows];
  process.stdout.write(`\n${title}\n\n${all.map(line).join('')}\n`);
}
