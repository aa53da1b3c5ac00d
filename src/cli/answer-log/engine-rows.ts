import { quoteLiteral, quoteName } from '../../embedded/clickhouse/sql.js';
import { LocalQueryError, streamLocalQuery } from '../../embedded/local-query.js';
import { StartError } from '../../lifecycle.js';
import { indices } from '../../lists.js';
import { explainReadError, type LogSource, maxRecordBytes } from './source.js';

export type LogLayout =
  | {
      readonly kind: 'csv' | 'tsv';
      readonly delimiter: string;
      readonly header: readonly string[];
      readonly headerLines: number;
    }
  | { readonly kind: 'ndjson'; readonly header: readonly string[] }
  | { readonly kind: 'parquet'; readonly header: readonly string[]; readonly types: readonly string[] };

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
  max_memory_usage: memoryBytes,
  max_bytes_before_external_sort: sortBytes,
  join_algorithm: 'grace_hash',
};

const buildSettings = (others: Readonly<Record<string, string>> = {}): string =>
  `SETTINGS ${Object.entries({ ...settings, ...others })
    .map(([name, value]) => `${name} = ${typeof value === 'number' ? value : quoteLiteral(value)}`)
    .join(', ')}`;

/** The engine reads these characters of a path as a pattern, in which `?` is any character. */
const quotePath = (path: string): string => quoteLiteral(path.replace(/[*?{}]/g, '?'));

/** First lines of the text. */
export async function readFirstLines(source: LogSource, most: number): Promise<Buffer[]> {
  const sql = `SELECT substring(line, 1, ${maxRecordBytes}) FROM file('stdin', 'LineAsString', 'line String', '${source.compression}')
    LIMIT ${most} ${buildSettings()}`;
  const chunks: Buffer[] = [];
  for await (const chunk of query(source, sql, 'TSVRaw')) chunks.push(chunk);
  return splitLines(Buffer.concat(chunks));
}

function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let at = 0;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, at)) {
    lines.push(bytes.subarray(at, end));
    at = end + 1;
  }
  return lines;
}

/** Names and types of the columns. */
export async function readParquetColumns({ path }: LogSource) {
  const sql = `SELECT * FROM file(${quotePath(path)}, 'Parquet') LIMIT 0`;
  const chunks: Buffer[] = [];
  const format = 'JSONCompactEachRowWithNamesAndTypes';
  for await (const chunk of explainEngineErrors(path, streamLocalQuery({ sql, format }))) chunks.push(chunk);
  const [header, types]: string[][] = splitLines(Buffer.concat(chunks)).map((line) =>
    JSON.parse(line.toString('utf8')),
  );
  return { header: header ?? [], types: types ?? [] };
}

async function* query(
  source: LogSource,
  sql: string,
  format: string,
  onBytes = (_: Buffer): void => undefined,
) {
  const input = source.isParquet ? undefined : source.read(onBytes);
  yield* explainEngineErrors(source.path, streamLocalQuery({ sql, format, ...(input && { input }) }));
}

async function* explainEngineErrors(path: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    throw error instanceof LocalQueryError ? explainEngineError(path, error) : explainReadError(path, error);
  }
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
    /INCORRECT_DATA|PARQUET|CANNOT_EXTRACT_TABLE_STRUCTURE/i,
    'the Parquet data is damaged. Write the file again',
  ],
];

function explainEngineError(path: string, error: LocalQueryError): StartError {
  const row = /\(at row (\d+)\)/.exec(error.message)?.[1];
  const before = /expected '(.+?)' before: '(.{0,40})/.exec(error.message);
  if (before !== null)
    return new StartError(
      `${path}: row ${row ?? '?'} has text after a closing quote, before ${JSON.stringify(before[2])}. Double the quotes inside a quoted field ("")`,
      { cause: error },
    );
  const found = engineErrors.find(([name]) => name.test(error.message))?.[1];
  return new StartError(`${path}: ${found ?? `the engine cannot read it: ${error.message.slice(0, 300)}`}`, {
    cause: error,
  });
}

/**
 * Rows with two numbers first. The first is the number of line ends in fields; of sorted rows, their place in
 * the file. The second is the number of fields if it is wrong, else -1.
 */
function buildQuery(
  layout: Exclude<LogLayout, { kind: 'ndjson' }>,
  source: LogSource,
  selection: RowSelection,
) {
  const { places, sortPlaces, join } = selection;
  const count = layout.header.length;
  const nameOf = (place: number): string => (place < count ? `c${place}` : 'extra');
  const own = [...new Set([...places, ...sortPlaces, ...(join === null ? [] : [join.place])])];
  const stored = own.filter((place) => place < count);
  const from =
    layout.kind === 'parquet' ? selectParquet(layout, source, stored) : selectText(layout, source, stored);
  const columns = ['fields', ...places.map(nameOf)].join(', ');
  if (sortPlaces.length === 0 && join === null) return `SELECT newlines, ${columns} FROM (${from})`;
  const headerLines = 'headerLines' in layout ? layout.headerLines : 0;
  const numbered = `SELECT * FROM (SELECT toInt64(rowNumberInAllBlocks()) AS number, * FROM (${from})) WHERE number >= ${headerLines}`;
  const keys = sortPlaces.map(nameOf).flatMap((name) => [`toFloat64OrNull(${name})`, name]);
  return `SELECT number, ${columns} FROM (${join === null ? numbered : joinColumn(numbered, join)})
    ORDER BY ${[...keys, 'number'].join(', ')}`;
}

function selectText(
  { kind, header }: Extract<LogLayout, { headerLines: number }>,
  { compression }: LogSource,
  places: readonly number[],
): string {
  const count = header.length;
  const names = indices(count + 1).map((place) => `c${place}`);
  const structure = names.map((name) => `${name} Nullable(String)`).join(', ');
  // Only quoted fields of CSV contain line ends.
  const newlines =
    kind === 'tsv'
      ? '0'
      : names
          .slice(0, count)
          .map((name) => `countSubstrings(ifNull(${name}, ''), '\\n')`)
          .join(' + ');
  const fields = names.map((name) => `isNotNull(${name})`).join(' + ');
  return `SELECT ${newlines} AS newlines, if(isNull(c${count - 1}) OR isNotNull(c${count}), ${fields}, -1) AS fields,
    ${places.map((place) => `c${place}`).join(', ')}
    FROM file('stdin', '${kind === 'tsv' ? 'TSVRaw' : 'CSV'}', ${quoteLiteral(structure)}, '${compression}')`;
}

function selectParquet(
  { header, types }: Extract<LogLayout, { kind: 'parquet' }>,
  { path }: LogSource,
  places: readonly number[],
): string {
  const columns = places.map((place) => {
    const [name, type] = [quoteName(header[place] as string), types[place] as string];
    if (type.includes('DateTime'))
      return `toString(toUnixTimestamp64Micro(toDateTime64(${name}, 6)) / 1e6) AS c${place}`;
    return `${/Array|Tuple|Map/.test(type) ? 'toJSONString' : 'toString'}(${name}) AS c${place}`;
  });
  return `SELECT 0 AS newlines, -1 AS fields, ${columns.join(', ')} FROM file(${quotePath(path)}, 'Parquet')`;
}

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
  const parseLine =
    layout.kind === 'ndjson' ? createJsonParser(layout, selection) : createTextParser(layout, selection);
  const sql =
    layout.kind === 'ndjson'
      ? `SELECT substring(line, 1, ${maxLineBytes + 1}) FROM file('stdin', 'LineAsString', 'line String', '${source.compression}')`
      : buildQuery(layout, source, selection);
  const chunks = query(
    source,
    `${sql} ${buildSettings(findTextSettings(layout))}`,
    layout.kind === 'ndjson' ? 'TSVRaw' : 'TSV',
    onBytes,
  );
  const decoder = new TextDecoder(selection.encoding, { ignoreBOM: true });
  let line = 0;
  for await (const bytes of splitAtLines(source.path, chunks, () => line)) {
    const text = decoder.decode(bytes);
    const rows = text
      .slice(0, -1)
      .split('\n')
      .flatMap((row) => {
        const parsed = parseLine(row);
        line = parsed.line;
        return parsed.values.length === 0 && parsed.problem === null ? [] : [parsed];
      });
    if (text.includes('\uFFFD')) rejectEncoding(source.path, layout, selection, rows);
    yield rows;
  }
}

const findTextSettings = (layout: LogLayout): Readonly<Record<string, string>> => ({
  format_csv_null_representation: missing,
  format_tsv_null_representation: missing,
  ...('delimiter' in layout && { format_csv_delimiter: layout.delimiter }),
});

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

function createTextParser(
  layout: Exclude<LogLayout, { kind: 'ndjson' }>,
  { sortPlaces, join }: RowSelection,
) {
  const headerLines = 'headerLines' in layout ? layout.headerLines : 0;
  const isNumbered = sortPlaces.length > 0 || join !== null;
  const { length: count } = layout.header;
  let line = 0;
  return (text: string): EngineRow => {
    const [first, fields, ...values] = text.split('\t');
    line = isNumbered ? Number(first) + 1 : line + Number(first) + 1;
    if (fields === '0' || line <= headerLines) return { line, values: [], problem: null };
    const problem = fields === '-1' ? null : `the row has ${fields} fields, the header has ${count}`;
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

function createJsonParser({ header }: LogLayout, { places }: RowSelection) {
  const names = places.map((place) => header[place] as string);
  let line = 0;
  return (text: string): EngineRow => {
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
