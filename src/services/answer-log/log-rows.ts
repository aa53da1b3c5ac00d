import { distinct, indices } from '../../lists.js';
import type { MappedColumn } from './formats.js';
import type { ColumnMapping } from './map-columns.js';
import {
  createAnswerParser,
  type FileAnswer,
  isForeign,
  type ParserInput,
  type RawFields,
  skillSeparator,
} from './rows.js';
import { isAbsent, parseNumberField, RowProblem } from './values.js';

/** An answer, or why the row has none. */
export type LogRow =
  | {
      readonly line: number;
      readonly answer: FileAnswer;
      /** Consecutive rows of a learner with the same key are one answer. */
      readonly mergeKey?: unknown;
    }
  | {
      readonly line: number;
      readonly answer: null;
      /** The same for all rows with the problem. */
      readonly reason: string;
      /** With the value of the row. */
      readonly message: string;
      /** Left out by a rule of the format or an option; not invalid. */
      readonly isFiltered?: true;
    };

/** `places`: of the header, in the order of the values that `read` expects. */
export function createRowReader({ mapping, ...input }: ParserInput & { readonly mapping: ColumnMapping }) {
  const { filter } = input.format;
  const isFiltering = filter && (filter.option === null || input.options[filter.option]);
  const places = distinct(Object.values(mapping.positions).flat());
  const pick = createFieldPicker(mapping, places, isForeign(input.format) ? missingMarks : new Set());
  const parse = createAnswerParser(input);
  const readFields = (line: number, fields: RawFields): LogRow[] => {
    if (isFiltering && String(fields[filter.column] ?? '').trim() !== filter.value)
      return [{ line, answer: null, reason: filter.reason, message: filter.reason, isFiltered: true }];
    if ('seen' in fields) return expandCounts(line, fields, parse);
    return [{ line, answer: parse(fields), mergeKey: fields.answer_id }];
  };
  const read = (line: number, values: readonly unknown[]): LogRow[] => {
    try {
      return readFields(line, pick(values));
    } catch (error) {
      if (!(error instanceof RowProblem)) throw error;
      return [{ line, answer: null, reason: error.reason, message: error.message }];
    }
  };
  return { places, read };
}

/** How other systems write a missing value. */
const missingMarks: ReadonlySet<unknown> = new Set('. NA N/A NaN nan NULL null None \\N'.split(' '));

/** Joins skills with `~~`, other columns with a slash. */
function createFieldPicker(
  { positions }: ColumnMapping,
  places: readonly number[],
  missing: ReadonlySet<unknown>,
) {
  const sources = (Object.entries(positions) as [MappedColumn, readonly number[]][]).map(([column, own]) => ({
    column,
    indexes: own.map((place) => places.indexOf(place)),
    separator: column === 'skill_id' ? skillSeparator : '/',
  }));
  return (values: readonly unknown[]): RawFields => {
    const fields: Partial<Record<MappedColumn, unknown>> = {};
    for (const { column, indexes, separator } of sources) {
      const own = indexes.map((i) => values[i]);
      const value = own.length === 1 ? own[0] : own.filter((part) => !isAbsent(part)).join(separator);
      fields[column] = missing.has(value) ? undefined : value;
    }
    return fields;
  };
}

const maxCount = 10_000;

/** Wrong answers first: the order within a session is unknown. */
function expandCounts(line: number, fields: RawFields, parse: (fields: RawFields) => FileAnswer): LogRow[] {
  const seen = parseNumberField('seen', fields.seen, [0, maxCount]) ?? 0;
  const right = parseNumberField('right', fields.right, [0, maxCount]) ?? 0;
  if (right > seen) throw new RowProblem('right', 'is larger than the number of answers', right);
  return indices(seen).map((i) => ({
    line,
    answer: parse({ ...fields, correct: i < seen - right ? '0' : '1' }),
  }));
}
