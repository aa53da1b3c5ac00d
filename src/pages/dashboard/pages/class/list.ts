/** Lists of learners as people have them: pasted, or a column of a file. */
import { dsvFormat } from 'd3-dsv';

/** Most learners of a class, as POST /predictions and POST /mastery take them. */
export const mostLearners = 500;

/** Ids have no control characters, so that they are told apart in an address by line breaks. */
export const idsOf = (list: string): string[] => list.split('\n');
export const listOf = (ids: readonly string[]): string => ids.join('\n');

/** One a line, or with commas or tabs between them; quotes hold those that have commas themselves. */
export const pastedIds = (text: string): string[] => unique(rowsOf(text.replaceAll('\t', ','), ',').flat());

/** The first column of a file, without its head. */
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
