import { dsvFormat } from 'd3-dsv';
import { distinct } from '../../../../lists.js';

/** Line breaks can separate ids, because ids contain none. */
export const splitIds = (list: string): string[] => list.split('\n');
export const joinIds = (ids: readonly string[]): string => ids.join('\n');

/** Splits at line breaks, commas and tabs. Ids with commas need quotes. */
export const parsePastedIds = (text: string): string[] =>
  normalizeIds(parseRows(text.replaceAll('\t', ','), ',').flat());

/** Reads the first column of a CSV file, without a header. */
export function parseFileIds(text: string): string[] {
  const cells = parseRows(text, detectSeparator(text)).map(([first = '']) => first.trim());
  return normalizeIds(
    /^(user|learner|student)?[\s_-]?(id|name)?$/i.test(cells[0] ?? '') ? cells.slice(1) : cells,
  );
}

/** Spreadsheets with decimal commas write semicolons. */
function detectSeparator(text: string): string {
  const head = text.split('\n', 1)[0] ?? '';
  return ['\t', ','].find((mark) => head.includes(mark)) ?? ';';
}

/** Removes a byte order mark. */
const parseRows = (text: string, separator: string): string[][] =>
  dsvFormat(separator).parseRows(text.replace(/^\uFEFF/, '').replaceAll(/\r\n?/g, '\n'));

const normalizeIds = (ids: readonly string[]): string[] =>
  distinct(ids.map((id) => id.trim()).filter((id) => id !== ''));
