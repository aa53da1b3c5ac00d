import { quoteLiteral, quoteName } from '../../embedded/clickhouse/sql.js';
import { StartError } from '../../lifecycle.js';
import { distinct, indices, splitIntoParts } from '../../lists.js';
import type { LogFormat } from '../../services/answer-log/formats.js';
import type { LogSource } from './source.js';

export interface LogLayout {
  readonly kind: 'csv' | 'tsv' | 'ndjson' | 'parquet';
  readonly header: readonly string[];
  /** Lines up to the header; 0 without one. */
  readonly headerLines: number;
  readonly delimiter: string;
  /** Of Parquet. */
  readonly types: readonly string[];
}

/** What to read. Places are positions in the header; the one after the last is the column of `join`. */
export interface RowSelection {
  readonly places: readonly number[];
  readonly sortPlaces: readonly number[];
  /** Adds a column of another CSV file. */
  readonly join: JoinedColumn | null;
  readonly encoding: string;
  /** Dates such as 3/4/2026 start with the month. Matters only for sorting. */
  readonly isMonthFirst: boolean;
}

/** `place`: of the id. */
export type JoinedColumn = NonNullable<LogFormat['join']> & { readonly path: string; readonly place: number };

/** Marks a missing value. Ids cannot contain it. */
export const missing = '\u0001';
/**
 * Row after the last one. If it is missing in the result, the data is truncated: the engine reports no error for
 * truncated zstd. In CSV it also reveals an unclosed quote, which the engine ignores at the end of the data.
 */
export const endText = '\u0002end';
export const endRow = Buffer.from(`\n"${endText}"\n`);
const memoryBytes = 1_500_000_000;
const sortBytes = 300_000_000;

const settings = {
  max_threads: 1,
  max_block_size: 8192,
  input_format_parallel_parsing: 0,
  input_format_parquet_preserve_order: 1,
  input_format_csv_allow_variable_number_of_columns: 1,
  input_format_tsv_allow_variable_number_of_columns: 1,
  input_format_csv_empty_as_default: 0,
  // Accepts both kinds of line ends, and leaves CR in the last field.
  input_format_tsv_crlf_end_of_line: 1,
  max_memory_usage: memoryBytes,
  max_bytes_before_external_sort: sortBytes,
  max_bytes_ratio_before_external_sort: 0,
  max_bytes_in_join: sortBytes,
  join_algorithm: 'grace_hash',
  format_csv_null_representation: missing,
  format_tsv_null_representation: missing,
};

export const buildSettings = (delimiter = ','): string =>
  `SETTINGS ${Object.entries({
    ...settings,
    format_csv_delimiter: delimiter,
    input_format_csv_allow_whitespace_or_tab_as_delimiter: /[ \t]/.test(delimiter) ? 1 : 0,
  })
    .map(([name, value]) => `${name} = ${typeof value === 'number' ? value : quoteLiteral(value)}`)
    .join(', ')}`;

/** @throws StartError for a path that the engine reads as a pattern */
export function quotePath(path: string): string {
  if (/[*?{}]/.test(path))
    throw new StartError(`${path}: the path cannot contain *, ?, { or }. Rename the file`);
  return quoteLiteral(path);
}

export const selectLines = ({ compression }: LogSource): string =>
  `file('stdin', 'LineAsString', 'line String', '${compression}')`;

/**
 * Each row starts with its place in the file if rows are sorted, else 0; the number of line ends in its fields; and the
 * number of its fields if it is wrong, else -1, or `endText` for the end row.
 */
export function buildQuery(
  source: LogSource,
  layout: LogLayout,
  { places, sortPlaces, join, isMonthFirst }: RowSelection,
): string {
  const count = layout.header.length;
  const nameOf = (place: number): string => (place < count ? `c${place}` : 'extra');
  const all = distinct([...places, ...sortPlaces, ...(join === null ? [] : [join.place])]);
  const stored = all.filter((place) => place < count);
  const from = (layout.kind === 'parquet' ? selectParquet : selectText)(source, layout, stored);
  const columns = ['newlines', 'fields', ...places.map(nameOf)].join(', ');
  if (sortPlaces.length === 0 && join === null) return `SELECT 0, ${columns} FROM (${from})`;
  const rows = `SELECT * FROM (SELECT toInt64(rowNumberInAllBlocks()) AS number, * FROM (${from}))
    WHERE number >= ${layout.headerLines}`;
  const parseDate = isMonthFirst ? 'parseDateTime64BestEffortUSOrNull' : 'parseDateTime64BestEffortOrNull';
  const keys = sortPlaces.map(nameOf).flatMap((name) => {
    const text = `trimRight(${name}, '\\r')`;
    return [`toFloat64OrNull(${text})`, `${parseDate}(${text}, 3, 'UTC')`, name];
  });
  return `SELECT number, ${columns} FROM (${join === null ? rows : joinColumn(rows, join)})
    ORDER BY ${[...keys, 'number'].join(', ')}`;
}

type SelectColumns = (source: LogSource, layout: LogLayout, places: readonly number[]) => string;

const selectText: SelectColumns = ({ compression }, { kind, header }, places) => {
  const count = header.length;
  const names = indices(count + 1).map((place) => `c${place}`);
  // The engine limits the depth of expressions to 1,000.
  const sum = (of: (name: string) => string): string =>
    splitIntoParts(names.map(of), 50)
      .map((part) => `(${part.join(' + ')})`)
      .join(' + ');
  const structure = names.map((name) => `${name} Nullable(String)`).join(', ');
  // Only quoted fields of CSV contain line ends.
  return `SELECT ${kind === 'tsv' ? '0' : sum((name) => `countSubstrings(ifNull(${name}, ''), '\n')`)} AS newlines,
    multiIf(ifNull(c0, '') IN ('${endText}', '"${endText}"'), '${endText}',
      isNull(c${count - 1}) OR isNotNull(c${count}), toString(${sum((name) => `isNotNull(${name})`)}), '-1') AS fields,
    ${places.map((place) => `c${place}`).join(', ')}
    FROM file('stdin', '${kind === 'tsv' ? 'TSVRaw' : 'CSV'}', ${quoteLiteral(structure)}, '${compression}')`;
};

/** Parquet types that are passed on as JSON. */
export const listType = /Array|Tuple|Map/;

const selectParquet: SelectColumns = ({ path }, { header, types }, places) => {
  const columns = places.map((place) => {
    const [name, type] = [quoteName(header[place] as string), types[place] as string];
    if (listType.test(type)) return `toJSONString(${name}) AS c${place}`;
    if (type.includes('DateTime')) return `toString(toDateTime64(${name}, 6, 'UTC')) || 'Z' AS c${place}`;
    return `toString(${type.includes('Float') ? `if(isNaN(${name}), NULL, ${name})` : name}) AS c${place}`;
  });
  return `SELECT 0 AS newlines, -1 AS fields, ${columns.join(', ')} FROM file(${quotePath(path)}, 'Parquet')`;
};

function joinColumn(rows: string, { path, place, id, column }: JoinedColumn): string {
  const structure = `${quoteName(id)} String, ${quoteName(column)} String`;
  return `SELECT a.*, b.extra AS extra FROM (${rows}) AS a LEFT JOIN
    (SELECT ${quoteName(id)} AS id, ${quoteName(column)} AS extra FROM file(${quotePath(path)}, 'CSVWithNames', ${quoteLiteral(structure)})) AS b
    ON ifNull(a.c${place}, '') = b.id`;
}
