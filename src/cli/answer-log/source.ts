import { createReadStream, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { StartError } from '../../lifecycle.js';
import { computeSum } from '../../lists.js';

/** Bytes of an answer log, and how the engine reads them. */
export interface LogSource {
  readonly path: string;
  readonly bytes: number;
  /** Of the bytes that `read` returns, for the engine's function `file`. */
  readonly compression: string;
  readonly isParquet: boolean;
  /** @param onBytes receives the bytes that identify the content */
  readonly read: (onBytes: (chunk: Buffer) => void) => AsyncIterable<Buffer>;
}

const bufferBytes = 256 * 1024;
/** Limits memory if a quote is not closed, or a file has no lines. */
export const maxRecordBytes = 1024 * 1024;

/** First bytes of a file. */
const containers: readonly (readonly [hex: string, name: string])[] = [
  ['1f8b', 'gzip'],
  ['28b52ffd', 'zstd'],
  ['fd377a585a00', 'xz'],
  ['425a68', 'bzip2'],
  ['04224d18', 'lz4'],
  ['504b0304', 'zip'],
  ['50415231', 'parquet'],
];

export const emptyProblem = 'is empty or truncated. Pass a file with a header and a row for each answer';

/** @throws StartError */
export async function openSource(path: string): Promise<LogSource> {
  try {
    const stat = statSync(path);
    if (stat.isDirectory()) return openFolder(path);
    if (!stat.isFile()) throw new StartError(`${path} is not a file`);
    const start = (await buffer(createReadStream(path, { end: 7 }))).toString('hex');
    if (start === '') throw new StartError(`${path} ${emptyProblem}`);
    const kind = containers.find(([hex]) => start.startsWith(hex))?.[1];
    const own = { path, bytes: stat.size, isParquet: kind === 'parquet' };
    if (kind === 'zip') return { ...own, ...(await openZip(path)) };
    if (kind === 'xz' || kind === 'bzip2' || kind === 'lz4')
      throw new StartError(`${path} is compressed with ${kind}. Decompress it first`);
    if (/^(fffe|feff)/.test(start))
      throw new StartError(`${path} is UTF-16. Convert it: iconv -f UTF-16 -t UTF-8 ${path} > utf8.csv`);
    const isText = kind === undefined;
    return {
      ...own,
      compression: isText || own.isParquet ? 'none' : kind,
      read: (onBytes) => {
        const chunks = reportBytes(createReadStream(path, { highWaterMark: bufferBytes }), onBytes);
        return isText ? limitLines(path, chunks) : chunks;
      },
    };
  } catch (error) {
    throw explainReadError(path, error);
  }
}

async function* reportBytes(chunks: AsyncIterable<Buffer>, onBytes: (chunk: Buffer) => void) {
  for await (const chunk of chunks) {
    onBytes(chunk);
    yield chunk;
  }
}

const lineFeed = 0x0a;

/** @throws StartError for a line above the limit */
async function* limitLines(path: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let [start, offset] = [0, 0];
  for await (const chunk of chunks) {
    const last = chunk.lastIndexOf(lineFeed);
    if (last >= 0) start = offset + last + 1;
    offset += chunk.length;
    if (offset - start > maxRecordBytes) throw await rejectLine(path, start);
    yield chunk;
  }
}

/** @param start byte at which the line starts */
async function rejectLine(path: string, start: number): Promise<StartError> {
  let line = 1;
  const before = start === 0 ? [] : createReadStream(path, { end: start - 1 });
  for await (const chunk of before) for (const byte of chunk) if (byte === lineFeed) line++;
  return new StartError(
    `${path}: line ${line} is longer than 1 MiB. Is this a text file with one answer per line?`,
  );
}

const maxListedFiles = 5;

/** Reads the only file in an archive. */
async function openZip(path: string) {
  const rejectArchive = (cause: Error): never => {
    throw new StartError(`${path}: the archive is damaged or truncated (${cause.message})`, { cause });
  };
  const zip = await openPromise(path, { lazyEntries: true, autoClose: false }).catch(rejectArchive);
  const entries = await listEntries(zip).catch(rejectArchive);
  if (entries.some(({ fileName }) => fileName === 'xl/workbook.xml'))
    throw new StartError(`${path} is an Excel file. Save it as CSV`);
  const [entry, another] = entries;
  if (entry === undefined || another !== undefined) {
    const names = entries.slice(0, maxListedFiles).map(({ fileName }) => fileName);
    throw new StartError(
      `${path} contains ${entries.length} files: ${names.join(', ')}. Extract it, and pass one of them`,
    );
  }
  async function* read(onBytes: (chunk: Buffer) => void) {
    try {
      yield* reportBytes(await zip.openReadStreamPromise(entry as Entry), onBytes);
    } catch (error) {
      rejectArchive(error as Error);
    }
  }
  return { bytes: entry.uncompressedSize, compression: 'none', read };
}

/** Without folders and hidden files. */
async function listEntries(zip: ZipFile): Promise<Entry[]> {
  const entries = [];
  for await (const entry of zip.eachEntry())
    if (!/\/$|(^|\/)(\.|__MACOSX\/)/.test(entry.fileName)) entries.push(entry);
  return entries;
}

const learnerFile = /^(u\d+)\.csv$/;

/** EdNet KT1: one file per learner. They become one CSV with the learner in the first column. */
function openFolder(path: string): LogSource {
  const names = readdirSync(path).filter((name) => learnerFile.test(name));
  if (names.length === 0)
    throw new StartError(`${path} is a folder without u*.csv. Pass a file, or the folder KT1 of EdNet`);
  names.sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
  async function* read(onBytes: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
    let header = '';
    for (const name of names) {
      const bytes = readFileSync(join(path, name));
      if (bytes.length === 0) continue;
      onBytes(Buffer.from(name));
      onBytes(bytes);
      const [first = '', ...rows] = bytes.toString('latin1').trimEnd().split(/\r?\n/);
      if (header === '') yield Buffer.from(`user_id,${first}\n`);
      header ||= first;
      if (first !== header)
        throw new StartError(`${join(path, name)}: line 1 differs from the first line of ${names[0]}`);
      const user = basename(name, '.csv');
      yield Buffer.from(rows.map((row) => `${user},${row}\n`).join(''), 'latin1');
    }
  }
  const bytes = computeSum(names.map((name) => statSync(join(path, name)).size));
  return { path, bytes, compression: 'none', isParquet: false, read };
}

const systemErrors: Partial<Record<string, string>> = { ENOENT: 'no such file', EACCES: 'permission denied' };

export function explainReadError(path: string, cause: unknown): unknown {
  if (!(cause instanceof Error && 'syscall' in cause)) return cause;
  const code = 'code' in cause ? String(cause.code) : '';
  return new StartError(`${path} cannot be read: ${systemErrors[code] ?? cause.message}`, { cause });
}
