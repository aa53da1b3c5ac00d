import { gzipSync } from 'node:zlib';
import { quoteLiteral, quoteName } from '../../embedded/clickhouse/sql.js';
import { LocalQueryError, streamLocalQuery } from '../../embedded/local-query.js';
import { StartError } from '../../lifecycle.js';
import { distinct, indices } from '../../lists.js';
import { explainReadError, type LogSource, maxRecordBytes } from './source.js';

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
}

export interface JoinedColumn {
  readonly path: string;
  readonly place: number;
  readonly id: string;
  readonly column: string;
}

/** One row, or its problem. */
export interface EngineRow {
  /** Last line of the row, from 1; in Parquet, the number of the row. */
  readonly line: number;
  /** In the order of the selection; undefined: missing. */
  readonly values: readonly unknown[];
  readonly problem: string | null;
}

/** Marks a missing value. Ids cannot contain it. */
const missing = '\u0001';
/**
 * Row after the last one of a CSV. The engine ignores an unclosed quote at the end of the data. With this row, it
 * reports text after a closing quote.
 */
const endText = '\u0002end';
const endRow = Buffer.from(`\n"${endText}"\n`);
/** By compression. Decoders continue with the next frame. */
const endFrames: Readonly<Record<string, Buffer>> = {
  none: endRow,
  gzip: gzipSync(endRow),
  zstd: Buffer.from('KLUv/QRYQQAACiICZW5kIgp3fhbz', 'base64'),
};
export const maxLineBytes = 64 * 1024;
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

const buildSettings = ({ delimiter }: Pick<LogLayout, 'delimiter'> = { delimiter: ',' }): string =>
  `SETTINGS ${Object.entries({
    ...settings,
    format_csv_delimiter: delimiter,
    input_format_csv_allow_whitespace_or_tab_as_delimiter: /[ \t]/.test(delimiter) ? 1 : 0,
  })
    .map(([name, value]) => `${name} = ${typeof value === 'number' ? value : quoteLiteral(value)}`)
    .join(', ')}`;

/** The engine reads these characters of a path as a pattern, in which `?` is any character. */
const quotePath = (path: string): string => quoteLiteral(path.replace(/[*?{}]/g, '?'));

/** First lines of the text. */
export async function readFirstLines(source: LogSource, most: number, encoding: string): Promise<string[]> {
  const sql = `SELECT substring(line, 1, ${maxRecordBytes}) FROM ${selectLines(source)} LIMIT ${most} ${buildSettings()}`;
  const text = new TextDecoder(encoding).decode(await readAll(query(source, sql, 'TSVRaw')));
  return text.split(/\r?\n/);
}

const selectLines = ({ compression }: LogSource): string =>
  `file('stdin', 'LineAsString', 'line String', '${compression}')`;

/** Names and types of the columns. */
export async function readParquetColumns(source: LogSource) {
  const sql = `SELECT * FROM file(${quotePath(source.path)}, 'Parquet') LIMIT 0`;
  const text = await readAll(query(source, sql, 'JSONCompactEachRowWithNamesAndTypes'));
  const [header = [], types = []]: string[][] = JSON.parse(
    `[${text.toString('utf8').trim().replaceAll('\n', ',')}]`,
  );
  return { header, types };
}

async function readAll(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

async function* query(
  source: LogSource,
  sql: string,
  format: string,
  onBytes = (_: Buffer): void => undefined,
  end: readonly Buffer[] = [],
): AsyncGenerator<Buffer> {
  const input = source.isParquet ? {} : { input: append(source.read(onBytes), end) };
  try {
    yield* streamLocalQuery({ sql, format, ...input });
  } catch (error) {
    throw error instanceof LocalQueryError
      ? explainEngineError(source.path, error)
      : explainReadError(source.path, error);
  }
}

async function* append(chunks: AsyncIterable<Buffer>, end: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
  yield* end;
}

/** Causes by the name of the engine's error. */
const engineErrors: readonly (readonly [name: RegExp, problem: string])[] = [
  [
    /INFLATE_FAILED|ZSTD_DECODER|LZMA|BZIP2|LZ4_DECODER|CANNOT_DECOMPRESS|UNEXPECTED_END_OF_FILE|CANNOT_READ_ALL/,
    'the compressed data is damaged or truncated. Copy or download the file again',
  ],
  [
    /MEMORY_LIMIT_EXCEEDED|TOO_LARGE_STRING_SIZE/,
    'a line or a quoted field is too long. Close the quote, or check that each line has one answer',
  ],
  [
    /@chdb|libchdb/,
    'the engine that reads files is not installed (package chdb). In containers, use the service import',
  ],
  [/INCORRECT_DATA|PARQUET|TABLE_STRUCTURE/i, 'the Parquet data is damaged. Write the file again'],
];

const maxMessageCharacters = 300;

function explainEngineError(path: string, error: LocalQueryError): StartError {
  const [, rest] = /expected '.+?' before: '((?:(?!\\n)(?:[^'\\]|\\.)){0,40})/.exec(error.message) ?? [];
  const row = /\(at row (\d+)\)/.exec(error.message)?.[1];
  const quoting = rest?.startsWith(endText)
    ? 'an unclosed quote'
    : `text after a closing quote, before ${JSON.stringify(rest)}`;
  const problem =
    rest === undefined
      ? (engineErrors.find(([name]) => name.test(error.message))?.[1] ??
        `the engine cannot read it: ${error.message.slice(0, maxMessageCharacters)}`)
      : `row ${row} has ${quoting}. Double the quotes inside a quoted field ("")`;
  return new StartError(`${path}: ${problem}`, { cause: error });
}

/**
 * Each row starts with three numbers: its place in the file if rows are sorted, else 0; line ends in its
 * fields; and the number of its fields if it is wrong, else -1.
 */
function buildQuery(
  source: LogSource,
  layout: LogLayout,
  { places, sortPlaces, join }: RowSelection,
): string {
  const count = layout.header.length;
  const nameOf = (place: number): string => (place < count ? `c${place}` : 'extra');
  const stored = distinct([...places, ...sortPlaces, ...(join === null ? [] : [join.place])]);
  const select = layout.kind === 'parquet' ? selectParquet : selectText;
  const from = select(
    source,
    layout,
    stored.filter((place) => place < count),
  );
  const columns = ['newlines', 'fields', ...places.map(nameOf)].join(', ');
  if (sortPlaces.length === 0 && join === null) return `SELECT 0, ${columns} FROM (${from})`;
  const rows = `SELECT * FROM (SELECT toInt64(rowNumberInAllBlocks()) AS number, * FROM (${from}))
    WHERE number >= ${layout.headerLines}`;
  const keys = sortPlaces.map(nameOf).flatMap((name) => [`toFloat64OrNull(trimRight(${name}, '\\r'))`, name]);
  return `SELECT number, ${columns} FROM (${join === null ? rows : joinColumn(rows, join)})
    ORDER BY ${[...keys, 'number'].join(', ')}`;
}

type SelectColumns = (source: LogSource, layout: LogLayout, places: readonly number[]) => string;

const selectText: SelectColumns = ({ compression }, { kind, header }, places) => {
  const count = header.length;
  const names = indices(count + 1).map((place) => `c${place}`);
  const sum = (of: (name: string) => string): string => names.map(of).join(' + ');
  const structure = names.map((name) => `${name} Nullable(String)`).join(', ');
  // Only quoted fields of CSV contain line ends.
  return `SELECT ${kind === 'tsv' ? '0' : sum((name) => `countSubstrings(ifNull(${name}, ''), '\n')`)} AS newlines,
    if(isNull(c${count - 1}) OR isNotNull(c${count}), ${sum((name) => `isNotNull(${name})`)}, -1) AS fields,
    ${places.map((place) => `c${place}`).join(', ')}
    FROM file('stdin', '${kind === 'tsv' ? 'TSVRaw' : 'CSV'}', ${quoteLiteral(structure)}, '${compression}')
    WHERE ifNull(c0, '') != '${endText}'`;
};

const selectParquet: SelectColumns = ({ path }, { header, types }, places) => {
  const columns = places.map((place) => {
    const [name, type] = [quoteName(header[place] as string), types[place] as string];
    if (type.includes('DateTime'))
      return `toString(toUnixTimestamp64Micro(toDateTime64(${name}, 6)) / 1e6) AS c${place}`;
    return `${/Array|Tuple|Map/.test(type) ? 'toJSONString' : 'toString'}(${name}) AS c${place}`;
  });
  return `SELECT 0 AS newlines, -1 AS fields, ${columns.join(', ')} FROM file(${quotePath(path)}, 'Parquet')`;
};

function joinColumn(rows: string, { path, place, id, column }: JoinedColumn): string {
  const structure = `${quoteName(id)} String, ${quoteName(column)} String`;
  return `SELECT a.*, b.extra AS extra FROM (${rows}) AS a LEFT JOIN
    (SELECT ${quoteName(id)} AS id, ${quoteName(column)} AS extra FROM file(${quotePath(path)}, 'CSVWithNames', ${quoteLiteral(structure)})) AS b
    ON ifNull(a.c${place}, '') = b.id`;
}

/** @yields pages of rows @throws StartError for damaged data, or text in another encoding */
export async function* streamRows(
  source: LogSource,
  layout: LogLayout,
  selection: RowSelection,
  onBytes: (chunk: Buffer) => void,
): AsyncGenerator<readonly EngineRow[]> {
  const isJson = layout.kind === 'ndjson';
  const parse = (isJson ? createJsonParser : createTextParser)(layout, selection);
  const sql = isJson
    ? `SELECT substring(line, 1, ${maxLineBytes + 1}) FROM ${selectLines(source)}`
    : buildQuery(source, layout, selection);
  if (source.isParquet) for await (const _ of source.read(onBytes));
  const end = layout.kind === 'csv' ? [endFrames[source.compression] as Buffer] : [];
  const chunks = query(source, `${sql} ${buildSettings(layout)}`, isJson ? 'TSVRaw' : 'TSV', onBytes, end);
  const decoder = new TextDecoder(selection.encoding, { ignoreBOM: true });
  let line = 0;
  for await (const bytes of splitAtLines(source.path, chunks, () => line)) {
    const text = decoder.decode(bytes);
    const rows = text.slice(0, -1).split('\n').map(parse);
    line = rows.at(-1)?.line ?? line;
    if (text.includes('\uFFFD')) rejectEncoding(source.path, layout, selection, rows);
    yield rows.filter(({ values, problem }) => values.length > 0 || problem !== null);
  }
}

/** Blocks of whole lines. */
async function* splitAtLines(path: string, chunks: AsyncIterable<Buffer>, countLines: () => number) {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(10) + 1;
    if (end > 0)
      yield rest.length === 0 ? chunk.subarray(0, end) : Buffer.concat([rest, chunk.subarray(0, end)]);
    rest = end > 0 ? chunk.subarray(end) : Buffer.concat([rest, chunk]);
    if (rest.length > maxRecordBytes)
      throw new StartError(`${path}: line ${countLines() + 1}: unclosed quote, or a record over 1 MiB`);
  }
}

const escapes: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', b: '\b', f: '\f', 0: '\0' };

type RowParser = (text: string) => EngineRow;

/** Blank lines and the header have neither values nor a problem. */
function createTextParser({ headerLines, header }: LogLayout, { sortPlaces, join }: RowSelection): RowParser {
  const isNumbered = sortPlaces.length > 0 || join !== null;
  let line = 0;
  return (text) => {
    const [number, newlines, fields, ...values] = text.split('\t');
    line = isNumbered ? Number(number) + 1 : line + Number(newlines) + 1;
    if (fields === '0' || line <= headerLines) return { line, values: [], problem: null };
    const problem = fields === '-1' ? null : `the row has ${fields} fields, the header has ${header.length}`;
    return { line, values: values.map(parseCell), problem };
  };
}

function parseCell(text: string): string | undefined {
  if (text === missing) return undefined;
  const value = text.includes('\\')
    ? text.replace(/\\(.)/g, (_, sign: string) => escapes[sign] ?? sign)
    : text;
  // TSV with CRLF.
  return value.endsWith('\r') ? value.slice(0, -1) : value;
}

function createJsonParser({ header }: LogLayout, { places }: RowSelection): RowParser {
  const names = places.map((place) => header[place] as string);
  let line = 0;
  return (text) => {
    line++;
    if (text.length > maxLineBytes)
      return { line, values: [], problem: `the line is longer than ${maxLineBytes} bytes` };
    if (text.trim() === '') return { line, values: [], problem: null };
    const value = parseObject(text.replace(/^\uFEFF/, ''));
    if (typeof value === 'string') return { line, values: [], problem: value };
    return { line, values: names.map((name) => value[name]), problem: null };
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | string {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : 'not a JSON object';
  } catch (error) {
    if (error instanceof SyntaxError) return 'not valid JSON';
    throw error;
  }
}

function rejectEncoding(
  path: string,
  { header }: LogLayout,
  { places }: RowSelection,
  rows: readonly EngineRow[],
): void {
  for (const { line, values } of rows) {
    const at = values.findIndex((value) => typeof value === 'string' && value.includes('\uFFFD'));
    if (at < 0) continue;
    const column = header[places[at] as number];
    throw new StartError(
      `${path}: line ${line}, column "${column}" is not valid UTF-8. Pass the encoding of the file, for example --encoding latin1`,
    );
  }
}
