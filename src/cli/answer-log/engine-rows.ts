import { isUtf8 } from 'node:buffer';
import { buffer, text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { LocalQueryError, streamLocalQuery } from '../../embedded/local-query.js';
import { StartError } from '../../lifecycle.js';
import { parseJson } from '../../services/answer-log/values.js';
import {
  buildQuery,
  buildSettings,
  endRow,
  endText,
  type LogLayout,
  missing,
  quotePath,
  type RowSelection,
  selectLines,
} from './engine-query.js';
import { explainReadError, type LogSource, maxRecordBytes } from './source.js';

/** One row, or its problem. */
export interface EngineRow {
  /** Last line of the row, from 1; in Parquet and in sorted files, the number of the row. */
  readonly line: number;
  /** In the order of the selection; undefined: missing. */
  readonly values: readonly unknown[];
  readonly problem: string | null;
}

/** `endRow` by compression. Decoders continue with the next frame. Node 20 cannot write zstd. */
const endFrames: Readonly<Record<string, Buffer>> = {
  none: endRow,
  gzip: gzipSync(endRow),
  zstd: Buffer.from('KLUv/QRYQQAACiICZW5kIgp3fhbz', 'base64'),
};

export const maxLineBytes = 64 * 1024;
/** Replaces a longer line of NDJSON. */
const longLine = '\u0002long';

/** First lines of the text. */
export async function readFirstLines(source: LogSource, most: number, encoding: string): Promise<string[]> {
  const sql = `SELECT substring(line, 1, ${maxRecordBytes}) FROM ${selectLines(source)} LIMIT ${most} ${buildSettings()}`;
  const lines = await buffer(query(source, sql, 'TSVRaw', source.read(ignoreBytes)));
  return new TextDecoder(encoding).decode(lines).split(/\r?\n/);
}

/** Names and types of the columns. */
export async function readParquetColumns(source: LogSource) {
  const sql = `SELECT * FROM file(${quotePath(source.path)}, 'Parquet') LIMIT 0`;
  const lines = await text(query(source, sql, 'JSONCompactEachRowWithNamesAndTypes'));
  const [header = [], types = []]: string[][] = lines.split('\n', 2).map((line) => JSON.parse(line));
  return { header, types };
}

const ignoreBytes = (): void => undefined;

async function* query(source: LogSource, sql: string, format: string, input?: AsyncIterable<Buffer>) {
  try {
    yield* streamLocalQuery({ sql, format, input });
  } catch (error) {
    throw error instanceof LocalQueryError
      ? explainEngineError(source, error)
      : explainReadError(source.path, error);
  }
}

async function* append(chunks: AsyncIterable<Buffer>, end: Buffer) {
  yield* chunks;
  yield end;
}

const truncatedProblem = 'the compressed data is damaged or truncated. Copy or download the file again';

/** By the name of the engine's error. */
const engineProblems: Readonly<Record<string, string>> = {
  ZLIB_INFLATE_FAILED: truncatedProblem,
  ZSTD_DECODER_FAILED: truncatedProblem,
  MEMORY_LIMIT_EXCEEDED:
    'a line or a quoted field is too long. Close the quote, or check that each line has one answer',
};

/** The engine's error ends with its name, for example (ZLIB_INFLATE_FAILED). */
function findEngineProblem({ isParquet }: LogSource, message: string): string {
  const name = /\((\w+)\)$/.exec(message)?.[1] ?? '';
  const found = engineProblems[name];
  if (found !== undefined) return found;
  // chdb fails while it is loaded, so there is no name.
  if (/Chdb\w+Error|@chdb\//.test(message))
    return 'the engine that reads files is not installed (package chdb). In containers, use the service import';
  if (isParquet && name !== '') return 'the Parquet data is damaged. Write the file again';
  return `the engine cannot read it: ${message.slice(0, maxMessageCharacters)}`;
}

const maxMessageCharacters = 300;

function explainEngineError(source: LogSource, cause: LocalQueryError): StartError {
  const { message } = cause;
  const [, rest] = /expected '.+?' before: '((?:(?!\\n)(?:[^'\\]|\\.)){0,40})/.exec(message) ?? [];
  const row = /\(at row (\d+)\)/.exec(message)?.[1];
  const quoting = rest?.startsWith(endText)
    ? 'an unclosed quote'
    : `text after a closing quote, before ${JSON.stringify(rest)}`;
  const problem =
    rest === undefined
      ? findEngineProblem(source, message)
      : `row ${row} has ${quoting}. Double the quotes inside a quoted field ("")`;
  return new StartError(`${source.path}: ${problem}`, { cause });
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
    ? `SELECT if(length(line) > ${maxLineBytes}, '${longLine}', line) FROM ${selectLines(source)}`
    : buildQuery(source, layout, selection);
  const bytes = source.read(onBytes);
  // The engine opens a Parquet file by its path. This loop only reports the bytes.
  if (source.isParquet) for await (const _ of bytes);
  const input = append(bytes, endFrames[source.compression] as Buffer);
  const chunks = query(source, `${sql} ${buildSettings(layout.delimiter)}`, isJson ? 'TSVRaw' : 'TSV', input);
  const decoder = new TextDecoder(selection.encoding, { ignoreBOM: true });
  let line = 0;
  let isComplete = source.isParquet;
  for await (const block of splitAtLines(source.path, chunks, () => line)) {
    const text = decoder.decode(block);
    const rows = text.slice(0, -1).split('\n').map(parse);
    line = rows.at(-1)?.line ?? line;
    isComplete ||= text.includes(endText);
    // Valid UTF-8 can contain U+FFFD.
    if (text.includes('\uFFFD') && !isUtf8(block)) rejectEncoding(source.path, layout, selection, rows);
    yield rows.filter(({ values, problem }) => values.length > 0 || problem !== null);
  }
  if (!isComplete) throw new StartError(`${source.path}: ${truncatedProblem}`);
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

/** Blank lines, the header and the end row have no values and no problem. */
function createTextParser({ headerLines, header }: LogLayout, { sortPlaces, join }: RowSelection): RowParser {
  const isNumbered = sortPlaces.length > 0 || join !== null;
  let line = 0;
  return (text) => {
    const [number, newlines, fields, ...values] = text.split('\t');
    line = isNumbered ? Number(number) + 1 : line + Number(newlines) + 1;
    if (fields === '0' || fields === endText || line <= headerLines)
      return { line, values: [], problem: null };
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
    if (text === longLine)
      return { line, values: [], problem: `the line is longer than ${maxLineBytes} bytes` };
    if (text.trim() === '' || text === `"${endText}"`) return { line, values: [], problem: null };
    const value = parseObject(text.replace(/^\uFEFF/, ''));
    if (typeof value === 'string') return { line, values: [], problem: value };
    return { line, values: names.map((name) => value[name]), problem: null };
  };
}

/** @returns an object, or why the text is none */
export function parseObject(text: string): Readonly<Record<string, unknown>> | string {
  const value = parseJson(text);
  if (value === undefined) return 'not valid JSON';
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : 'not a JSON object';
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
