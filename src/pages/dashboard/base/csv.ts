import { csvFormatRows } from 'd3-dsv';

export type CellValue = string | number | boolean | null;

/** Spreadsheets execute text that looks like a formula (OWASP, CSV injection). Numbers such as -5 are safe. */
const escapeFormula = (cell: CellValue): string => {
  const text = cell === null ? '' : String(cell);
  return typeof cell === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
};

export const formatCsv = (headings: readonly string[], rows: readonly (readonly CellValue[])[]): string =>
  `${csvFormatRows([headings, ...rows].map((row) => row.map(escapeFormula)))}\n`;

export function downloadCsv(name: string, text: string): void {
  // Spreadsheets need the byte order mark to detect UTF-8.
  const url = URL.createObjectURL(new Blob(['\uFEFF', text], { type: 'text/csv;charset=utf-8' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
