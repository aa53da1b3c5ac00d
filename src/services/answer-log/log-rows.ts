import { indices } from '../../lists.js';
import type { ColumnMapping, LogFormat, MappedColumn } from './formats.js';
import type { ReadOptions } from './options.js';
import {
  createAnswerParser,
  type FileAnswer,
  type QuestionRow,
  type RawFields,
  skillSeparator,
} from './rows.js';
import { createTimeParser } from './times.js';
import { parseNumberField, RowProblem } from './values.js';

/** An answer, or why the row has none. */
export type LogRow =
  | { readonly line: number; readonly answer: FileAnswer }
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

const correctValues = ['1', 'true', 't', 'correct', 'y', 'yes'];
const incorrectValues = ['0', 'false', 'f', 'incorrect', 'wrong', 'n', 'no', 'hint'];

function buildResults({
  correctValues: right,
  incorrectValues: wrong,
}: ReadOptions): ReadonlyMap<string, boolean> {
  const entries = (values: readonly string[], isCorrect: boolean) =>
    values.map((value) => [value.trim().toLowerCase(), isCorrect] as const);
  const defaults = [
    ...entries(right === null ? correctValues : [], true),
    ...entries(wrong === null ? incorrectValues : [], false),
  ];
  return new Map([...defaults, ...entries(right ?? [], true), ...entries(wrong ?? [], false)]);
}

interface RowReaderInput {
  readonly format: LogFormat;
  readonly mapping: ColumnMapping;
  readonly options: ReadOptions;
  readonly header: readonly string[];
  readonly questions: ReadonlyMap<string, QuestionRow> | null;
  /** Unix milliseconds. */
  readonly now: number;
}

/**
 * @returns `places` of the header that the reader needs, in the order of the values; and the reader
 */
export function createRowReader({ format, mapping, options, header, questions, now }: RowReaderInput) {
  const filters = (format.filters ?? [])
    .filter(({ option }) => option === null || options[option])
    .map((filter) => ({ ...filter, place: header.indexOf(filter.column) }));
  const mergePlace = format.mergeBy === undefined ? -1 : header.indexOf(format.mergeBy);
  const places = [
    ...new Set([
      ...Object.values(mapping.positions).flat(),
      ...filters.map(({ place }) => place),
      ...(mergePlace < 0 ? [] : [mergePlace]),
    ]),
  ];
  const isForeign = !format.name.startsWith('skilltrace');
  const pick = createFieldPicker(mapping, places, isForeign ? missingMarks : new Set());
  const parse = createAnswerParser({
    skillSeparator: options.skillSeparator ?? format.skillSeparator ?? skillSeparator,
    parseTime: createTimeParser(
      options.timeFormat ?? format.timeFormat ?? 'auto',
      options.timezone ?? 'UTC',
      options.start ?? 0,
    ),
    results: buildResults(options),
    ...{ minScore: options.minScore, decimal: options.decimal, questions, now },
    responseUnit: format.responseUnit ?? 1,
    isForeign,
  });
  const mergeIndex = places.indexOf(mergePlace);
  const filterIndexes = filters.map(({ place }) => places.indexOf(place));
  return {
    places,
    mergeKeyOf: mergeIndex < 0 ? null : (values: readonly unknown[]) => String(values[mergeIndex] ?? ''),
    read: (line: number, values: readonly unknown[]): LogRow[] => {
      const failed = filters.find(
        ({ value }, i) => String(values[filterIndexes[i] as number] ?? '').trim() !== value,
      );
      if (failed !== undefined) {
        const { reason } = failed;
        return [{ line, answer: null, reason, message: reason, isFiltered: true }];
      }
      try {
        const fields = pick(values);
        return 'seen' in fields ? expandCounts(line, fields, parse) : [{ line, answer: parse(fields) }];
      } catch (error) {
        if (!(error instanceof RowProblem)) throw error;
        return [{ line, answer: null, reason: error.reason, message: error.message }];
      }
    },
  };
}

type PickedFields = RawFields & { readonly seen?: unknown; readonly right?: unknown };

/** How other systems write a missing value. */
const missingMarks: ReadonlySet<unknown> = new Set([
  '.',
  'NA',
  'N/A',
  'NaN',
  'nan',
  'NULL',
  'null',
  'None',
  '\\N',
]);

/** Joins skills with `~~`, other columns with a slash. */
function createFieldPicker(
  { positions }: ColumnMapping,
  places: readonly number[],
  missing: ReadonlySet<unknown>,
) {
  const columns = Object.entries(positions) as [MappedColumn, readonly number[]][];
  const sources = columns.map(
    ([column, own]) =>
      [
        column,
        own.map((place) => places.indexOf(place)),
        column === 'skill_id' ? skillSeparator : '/',
      ] as const,
  );
  return (values: readonly unknown[]): PickedFields => {
    const fields: Record<string, unknown> = {};
    for (const [column, own, separator] of sources) {
      const [first, another] = own;
      const value =
        another === undefined
          ? values[first as number]
          : joinValues(
              own.map((i) => values[i]),
              separator,
            );
      fields[column] = missing.has(value) ? undefined : value;
    }
    return fields;
  };
}

const joinValues = (values: readonly unknown[], separator: string): string =>
  values.filter((value) => value !== undefined && value !== null && value !== '').join(separator);

const maxCount = 10_000;

/** Wrong answers first: the order within a session is unknown. */
function expandCounts(
  line: number,
  fields: PickedFields,
  parse: (fields: RawFields) => FileAnswer,
): LogRow[] {
  const seen = parseNumberField('seen', fields.seen, [0, maxCount]) ?? 0;
  const right = parseNumberField('right', fields.right, [0, maxCount]) ?? 0;
  if (right > seen) throw new RowProblem('right', 'must not exceed the number of answers', right);
  return indices(seen).map((i) => ({
    line,
    answer: parse({ ...fields, correct: i < seen - right ? '0' : '1' }),
  }));
}
