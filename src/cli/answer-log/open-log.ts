import { statSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import { StartError } from '../../lifecycle.js';
import {
  type ColumnMapping,
  customFormat,
  detectFormat,
  findLookalikes,
  type LogFormat,
  listKcModels,
  logFormats,
  mapColumns,
} from '../../services/answer-log/formats.js';
import { createRowReader, type LogRow } from '../../services/answer-log/log-rows.js';
import { createRowMerger } from '../../services/answer-log/merge.js';
import type { ReadOptions } from '../../services/answer-log/options.js';
import {
  type JoinedColumn,
  type LogLayout,
  readFirstLines,
  readParquetColumns,
  streamRows,
} from './engine-rows.js';
import { findNeighbour, readQuestions } from './questions.js';
import { type LogSource, openSource } from './source.js';

export interface AnswerLogFile {
  readonly path: string;
  readonly bytes: number;
  readonly format: LogFormat;
  readonly mapping: ColumnMapping;
  readonly warnings: readonly string[];
  /** Reads all rows in order. @param now Unix milliseconds @param onBytes receives the content of the file */
  readonly readPages: (now: number, onBytes: (chunk: Buffer) => void) => AsyncGenerator<LogPage>;
}

export interface LogPage {
  /** Rows of the file behind the page. */
  readonly fileRows: number;
  readonly rows: readonly PlacedRow[];
}

/** `place` increases; without sorted, merged or expanded rows, it is the line. */
export interface PlacedRow {
  readonly place: number;
  readonly row: LogRow;
}

/** @throws StartError */
export async function openAnswerLog(path: string, options: ReadOptions): Promise<AnswerLogFile> {
  const source = await openSource(path);
  const layout = await detectLayout(source, options);
  const format = chooseFormat(path, layout.header, options);
  const isFolder = statSync(path).isDirectory();
  const join = findJoin(path, isFolder, format, layout.header);
  const header = join === null ? layout.header : [...layout.header, join.column];
  const mapping = mapColumns(header, format, options);
  requireColumns(path, header, format, mapping, options);
  const sortPlaces = findSortPlaces(path, header, format, layout, options);
  const questions = format.questions === undefined ? null : readQuestions(path, isFolder, format.questions);
  const encoding = options.encoding ?? format.encoding ?? 'utf-8';
  const isReordered = sortPlaces.length > 0 || 'seen' in mapping.positions;

  async function* readPages(now: number, onBytes: (chunk: Buffer) => void): AsyncGenerator<LogPage> {
    const reader = createRowReader({ format, mapping, options, questions, now });
    const merger = createRowMerger();
    let place = 0;
    const placeRows = (rows: readonly LogRow[]): PlacedRow[] =>
      rows.map((row) => {
        place = isReordered ? place + 1 : row.line;
        return { place, row };
      });
    const selection = { places: reader.places, sortPlaces, join, encoding };
    for await (const page of streamRows(source, layout, selection, onBytes)) {
      const rows = page.flatMap(({ line, values, problem }): LogRow[] =>
        problem === null
          ? reader.read(line, values)
          : [{ line, answer: null, reason: describeShape(problem), message: problem }],
      );
      yield { fileRows: page.length, rows: placeRows(reader.merges ? rows.flatMap(merger.add) : rows) };
    }
    yield { fileRows: 0, rows: placeRows(merger.flush()) };
  }
  const warnings = [...(format.notes ?? []), ...mapping.warnings];
  return { path, bytes: source.bytes, format, mapping, warnings, readPages };
}

/** Without the number of fields, which differs between rows. */
const describeShape = (problem: string): string =>
  problem.replace(/^the row has \d+ fields/, 'the row has fewer or more fields');

const maxHeaderLines = 20;

async function detectLayout(source: LogSource, { delimiter, encoding }: ReadOptions): Promise<LogLayout> {
  const none = { headerLines: 0, delimiter: ',', types: [] };
  if (source.isParquet) return { ...none, kind: 'parquet', ...(await readParquetColumns(source)) };
  const lines = await readFirstLines(source, maxHeaderLines, encoding ?? 'utf-8');
  const at = lines.findIndex((line) => line.trim() !== '');
  const first = lines[at];
  if (first === undefined)
    throw new StartError(`${source.path} is empty${source.compression === 'none' ? '' : ', or truncated'}`);
  if (first.includes('\r'))
    throw new StartError(
      `${source.path} ends lines with CR only. Convert it: tr '\\r' '\\n' < FILE > lf.csv`,
    );
  if (/^\s*\{/.test(first)) return { ...none, kind: 'ndjson', header: listKeys(lines.slice(at)) };
  const sign = delimiter ?? detectDelimiter(first);
  // Quotes in tab-separated files are text, except if the header has them.
  const kind = sign === '\t' && !first.includes('"') ? 'tsv' : 'csv';
  const header = kind === 'tsv' ? first.split('\t') : parseHeader(source.path, first, sign);
  return { ...none, kind, delimiter: sign, header: header.map((name) => name.trim()), headerLines: at + 1 };
}

/** The names of the first objects: optional fields can be missing in the first one. */
const listKeys = (lines: readonly string[]): string[] => [
  ...new Set(
    lines.flatMap((line) => {
      try {
        return Object.keys(JSON.parse(line));
      } catch (error) {
        if (error instanceof SyntaxError) return [];
        throw error;
      }
    }),
  ),
];

const delimiters = [',', '\t', ';', '|'];

function detectDelimiter(header: string): string {
  const counts = delimiters.map((sign) => header.replace(/"[^"]*"/g, '').split(sign).length);
  return delimiters[counts.indexOf(Math.max(...counts))] as string;
}

function parseHeader(path: string, line: string, delimiter: string): string[] {
  try {
    return parse(line, { delimiter, relax_quotes: true })[0] ?? [];
  } catch (cause) {
    throw new StartError(`${path}: line 1 is no valid header. Its quotes are not closed`, { cause });
  }
}

const formatNames = logFormats.map(({ name }) => name).join(', ');

function chooseFormat(path: string, header: readonly string[], { format, columns }: ReadOptions): LogFormat {
  if (format !== null) return logFormats.find(({ name }) => name === format) ?? customFormat;
  const found = detectFormat(header);
  if (found !== null) return found;
  if (Object.keys(columns).length > 0) return customFormat;
  const example = findLookalikes(header, ['user_id', 'skill_id', 'correct'])
    .map(({ column, similar }) => `${column}=${similar === undefined ? 'NAME' : JSON.stringify(similar)}`)
    .join();
  throw new StartError(
    `${path}: line 1 matches no known format. It has the columns ${listColumns(header)}.\nName the columns, for example --columns ${example}, or pass --format with one of ${formatNames}`,
  );
}

const maxListedColumns = 30;

/** As JSON, if they could change the terminal. */
const listColumns = (header: readonly string[]): string =>
  header
    .slice(0, maxListedColumns)
    .map((name) => (/\p{Cc}/u.test(name) ? JSON.stringify(name) : name))
    .join(', ');

function requireColumns(
  path: string,
  header: readonly string[],
  format: LogFormat,
  { positions, missing }: ColumnMapping,
  options: ReadOptions,
): void {
  const has = (...columns: readonly string[]): boolean => columns.some((column) => column in positions);
  const lacking = [
    ...missing,
    ...(has('user_id') ? [] : ['user_id']),
    ...(has('correct', 'choice', 'seen') ? [] : ['correct']),
    ...(has('skill_id', 'skill_ids') || format.questions !== undefined ? [] : ['skill_id']),
  ];
  const models = listKcModels(header);
  if (options.kc !== null && !models.includes(options.kc))
    throw new StartError(
      `${path} has no KC model ${JSON.stringify(options.kc)}. It has ${models.join(', ') || 'none'}`,
    );
  if (lacking.length > 0)
    throw new StartError(
      `${path}: line 1 lacks the columns ${lacking.join(', ')} (format ${format.name}). Name them with --columns. The file has ${listColumns(header)}`,
    );
  const used = new Set(Object.values(positions).flat());
  const repeated = header.find(
    (name, i) => used.has(i) && header.indexOf(name) !== header.lastIndexOf(name) && !name.startsWith('KC'),
  );
  if (repeated !== undefined) throw new StartError(`${path}: line 1 has the column ${repeated} twice`);
  for (const [flag, option] of Object.entries(filterFlags)) {
    const filter = format.filters?.find((one) => one.option === option);
    if (options[option] && (filter === undefined || !has(filter.column)))
      throw new StartError(
        `${path}: ${flag} does not apply to format ${format.name}, which has no column for it`,
      );
  }
}

const filterFlags = {
  '--first-attempts-only': 'firstAttemptsOnly',
  '--originals-only': 'originalsOnly',
} as const;

function findJoin(
  path: string,
  isFolder: boolean,
  { join }: LogFormat,
  header: readonly string[],
): JoinedColumn | null {
  if (join === undefined || header.includes(join.column)) return null;
  return {
    path: findNeighbour(path, isFolder, join.file),
    place: header.indexOf(join.id),
    id: join.id,
    column: join.column,
  };
}

function findSortPlaces(
  path: string,
  header: readonly string[],
  { sortBy = [] }: LogFormat,
  { kind }: LogLayout,
  options: ReadOptions,
): number[] {
  const names = options.sortBy === null ? sortBy.filter((name) => header.includes(name)) : [options.sortBy];
  const unknown = names.find((name) => !header.includes(name));
  if (unknown !== undefined)
    throw new StartError(`${path} has no column ${JSON.stringify(unknown)} for --sort-by`);
  if (kind !== 'ndjson') return names.map((name) => header.indexOf(name));
  if (options.sortBy !== null) throw new StartError(`${path}: --sort-by needs CSV or Parquet`);
  return [];
}
