/** Parses lists of learners that a user pastes or opens. */
import { dsvFormat } from 'd3-dsv';

/** Limit of POST /predictions and POST /mastery. */
export const mostLearners = 500;

/** Line breaks separate ids in the address, because ids have no control characters. */
export const idsOf = (list: string): string[] => list.split('\n');
export const listOf = (ids: readonly string[]): string => ids.join('\n');

/** Separated by line breaks, commas or tabs. Ids with commas need quotes. */
export const pastedIds = (text: string): string[] => unique(rowsOf(text.replaceAll('\t', ','), ',').flat());

/** The first column of a file without the head. */
export function columnIds(text: string): string[] {
  const cells = rowsOf(text, separatorOf(text)).map(([first = '']) => first.trim());
  return unique(/^(user|learner|student)?[\s_-]?(id|name)?$/i.test(cells[0] ?? '') ? cells.slice(1) : cells);
}

/** Spreadsheets write semicolons where the comma is for decimals. */
function separatorOf(text: string): string {
  const head = text.split('\n', 1)[0] ?? '';
  return ['\t', ','].find((mark) => head.includes(mark)) ?? ';';
}

/** Some editors begin a file with a mark of UTF-8. */
const rowsOf = (text: string, separator: string): string[][] =>
  dsvFormat(separator).parseRows(text.replace(/^\uFEFF/, '').replaceAll(/\r\n?/g, '\n'));

const unique = (ids: readonly string[]): string[] => [
  ...new Set(ids.map((id) => id.trim()).filter((id) => id !== '')),
];
