import { parse } from 'csv-parse/sync';
import { StartError } from '../../lifecycle.js';
import { distinct } from '../../lists.js';
import type { ReadOptions } from '../../services/answer-log/options.js';
import type { LogLayout } from './engine-query.js';
import { parseObject, readFirstLines, readParquetColumns } from './engine-rows.js';
import { emptyProblem, type LogSource } from './source.js';

const maxHeaderLines = 20;

/** Problems of the first line. */
const lineProblems: readonly (readonly [pattern: RegExp, problem: string])[] = [
  [/\r/, " ends lines with CR only. Convert it: tr '\\r' '\\n' < FILE > lf.csv"],
  [/^\s*\[/, " is a JSON array. Write one object per line: jq -c '.[]' FILE > FILE.ndjson"],
  [/\uFFFD/, ': line 1 is not valid UTF-8. Pass --encoding, for example latin1'],
];

/** @throws StartError for an empty file */
export async function detectLayout(
  source: LogSource,
  { delimiter, encoding }: ReadOptions,
): Promise<LogLayout> {
  const none = { headerLines: 0, delimiter: ',', types: [] };
  if (source.isParquet) return { ...none, kind: 'parquet', ...(await readParquetColumns(source)) };
  const lines = await readFirstLines(source, maxHeaderLines, encoding ?? 'utf-8');
  const at = lines.findIndex((line) => line.trim() !== '');
  const first = lines[at];
  if (first === undefined) throw new StartError(`${source.path} ${emptyProblem}`);
  const problem = lineProblems.find(([pattern]) => pattern.test(first))?.[1];
  if (problem !== undefined) throw new StartError(`${source.path}${problem}`);
  if (/^\s*\{/.test(first)) return { ...none, kind: 'ndjson', header: listKeys(lines.slice(at)) };
  const sign = delimiter ?? detectDelimiter(first);
  // Quotes in tab-separated files are text, except if the header has them.
  const kind = sign === '\t' && !first.includes('"') ? 'tsv' : 'csv';
  const header = kind === 'tsv' ? first.split('\t') : parseHeader(source.path, first, sign);
  return { ...none, kind, delimiter: sign, header: header.map((name) => name.trim()), headerLines: at + 1 };
}

/** The names of the first objects: optional fields can be missing in the first one. */
const listKeys = (lines: readonly string[]): string[] =>
  distinct(lines.map(parseObject).flatMap((value) => (typeof value === 'string' ? [] : Object.keys(value))));

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
