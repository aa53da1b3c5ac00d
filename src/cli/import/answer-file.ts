import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { parse } from 'csv-parse';
import { formatNumber } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import {
  type FileColumn,
  importColumns,
  type RawFields,
  type RawRow,
  requiredColumns,
  skillColumns,
} from '../../services/import/rows.js';
import type { CommandContext } from '../support/command.js';

export type AnswerFile = ReturnType<typeof openAnswerFile>;

const bufferBytes = 256 * 1024;
const rowsPerPage = 1000;
/** Protects memory against an unclosed quote. */
const maxRecordBytes = 1024 * 1024;
export const maxLineBytes = 64 * 1024;

/** @throws StartError */
export function openAnswerFile(path: string) {
  try {
    const stat = statSync(path);
    if (!stat.isFile()) throw new StartError(`${path} is not a file`);
    return { path, bytes: stat.size };
  } catch (error) {
    throw explainFileError(path, error);
  }
}

/**
 * Reads the whole file before the first row is counted. A repaired file has another hash, so its first rows
 * would count twice.
 * @param importOptions options that make it another import
 * @returns SHA-256 in hexadecimal
 */
export async function validateContent(
  file: AnswerFile,
  importOptions: string,
  { closers, showProgress }: Pick<CommandContext, 'closers' | 'showProgress'>,
): Promise<string> {
  const hash = createHash('sha256');
  let rows = 0;
  for await (const page of readPages(file, (chunk) => hash.update(chunk))) {
    if (closers.closing) break;
    rows += page.length;
    showProgress(`checking the file: ${formatNumber(rows)} rows`);
  }
  return createHash('sha256').update(hash.digest()).update(importOptions).digest('hex');
}

/**
 * Detects gzip, and NDJSON by a leading brace; all else is CSV with a header.
 * @throws StartError for a damaged gzip, missing columns, or an unclosed quote
 */
export async function* readPages(
  file: AnswerFile,
  onBytes: (chunk: Buffer) => void,
  columns: readonly FileColumn[] = importColumns,
): AsyncGenerator<readonly RawRow[]> {
  try {
    const raw = await peekFirst(readChunks(file, onBytes));
    const isGzip = raw.first?.[0] === 0x1f && raw.first[1] === 0x8b;
    const { first, all } = isGzip
      ? await peekFirst(pipeThrough(raw.all, createGunzip({ chunkSize: bufferBytes })))
      : raw;
    if (first === null) throw new StartError(`${file.path} is empty`);
    const isNdjson = /^\uFEFF?\s*\{/.test(first.toString('utf8', 0, 1000));
    let page: RawRow[] = [];
    for await (const row of isNdjson ? readNdjsonRows(all) : readCsvRows(file.path, all, columns)) {
      page.push(row);
      if (page.length < rowsPerPage) continue;
      yield page;
      page = [];
    }
    if (page.length > 0) yield page;
  } catch (error) {
    throw explainFileError(file.path, error);
  }
}

async function* readChunks(file: AnswerFile, onBytes: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of createReadStream(file.path, { highWaterMark: bufferBytes })) {
    onBytes(chunk);
    yield chunk;
  }
}

/** Errors of all streams reach the reader of the result. */
async function* pipeThrough<Item>(
  chunks: AsyncIterable<Buffer>,
  stream: NodeJS.ReadWriteStream,
): AsyncGenerator<Item> {
  yield* pipeline(Readable.from(chunks), stream, () => undefined) as AsyncIterable<Item>;
}

async function peekFirst(chunks: AsyncGenerator<Buffer>) {
  const { value, done } = await chunks.next();
  const first: Buffer | null = done ? null : value;
  async function* all(): AsyncGenerator<Buffer> {
    if (first !== null) yield first;
    yield* chunks;
  }
  return { first, all: all() };
}

const lineFeed = 0x0a;

/** Buffers at most one byte more than the limit of a line. */
async function* readNdjsonRows(chunks: AsyncIterable<Buffer>): AsyncGenerator<RawRow> {
  let line = 0;
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk]);
    let at = 0;
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, at)) {
      yield* parseNdjsonLine(bytes.subarray(at, end), ++line);
      at = end + 1;
    }
    rest = bytes.subarray(at, at + maxLineBytes + 1);
  }
  yield* parseNdjsonLine(rest, ++line);
}

function parseNdjsonLine(bytes: Buffer, line: number): RawRow[] {
  if (bytes.length > maxLineBytes) return [{ line, fields: `the line is longer than ${maxLineBytes} bytes` }];
  const text = bytes.toString('utf8').replace(/^\uFEFF|\r$/g, '');
  return text.trim() === '' ? [] : [{ line, fields: parseObject(text) }];
}

function parseObject(text: string): RawFields | string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : 'not a JSON object';
  } catch (error) {
    if (error instanceof SyntaxError) return 'not valid JSON';
    throw error;
  }
}

/**
 * `relax_quotes` accepts quotes inside a field: the parser's recovery would skip good records. A record over
 * several lines has the number of its last line.
 */
async function* readCsvRows(
  path: string,
  chunks: AsyncIterable<Buffer>,
  columns: readonly FileColumn[],
): AsyncGenerator<RawRow> {
  const parser = parse({
    bom: true,
    info: true,
    relax_quotes: true,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: maxRecordBytes,
  });
  const records = pipeThrough<{ record: string[]; info: { lines: number } }>(chunks, parser);
  let parseRecord: ReturnType<typeof readHeader> | undefined;
  for await (const { record, info } of records) {
    if (parseRecord) yield { line: info.lines, fields: parseRecord(record) };
    else parseRecord = readHeader(path, record, columns);
  }
  if (!parseRecord) throw new StartError(`${path} is empty`);
}

function readHeader(path: string, header: readonly string[], columns: readonly FileColumn[]) {
  const names = header.map((name) => name.trim());
  const missing: string[] = requiredColumns.filter((name) => !names.includes(name));
  if (!skillColumns.some((name) => names.includes(name))) missing.push(skillColumns.join(' or '));
  if (missing.length > 0)
    throw new StartError(`${path}: the header line lacks the columns ${missing.join(', ')}`);
  const present = columns.filter((name) => names.includes(name));
  const duplicate = present.find((name) => names.indexOf(name) !== names.lastIndexOf(name));
  if (duplicate !== undefined)
    throw new StartError(`${path}: the header line has the column ${duplicate} twice`);
  const positions = present.map((name) => [name, names.indexOf(name)] as const);
  return (record: readonly string[]): RawFields | string => {
    if (record.length !== names.length)
      return `the row has ${record.length} fields, the header has ${names.length}`;
    const fields: Partial<Record<FileColumn, unknown>> = {};
    for (const [name, place] of positions) fields[name] = record[place];
    return fields;
  };
}

function explainFileError(path: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StartError) return error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const because = (message: string) => new StartError(`${path}${message}`, { cause: error });
  if (code.startsWith('Z_')) return because(`: the gzip data is damaged or truncated (${error.message})`);
  if (code === 'CSV_QUOTE_NOT_CLOSED' || code === 'CSV_MAX_RECORD_SIZE')
    return because(`: line ${'lines' in error ? error.lines : '?'}: unclosed quote, or a record over 1 MiB`);
  if (code.startsWith('CSV_')) return because(`: ${error.message}`);
  return 'syscall' in error ? because(` cannot be read: ${systemErrors[code] ?? error.message}`) : error;
}

const systemErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
};
