import { readFileSync, realpathSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { findTimeProblem } from '../../contracts/answers/events.js';
import {
  customFormat,
  type LogFormat,
  logFormats,
  parseColumnList,
} from '../../services/answer-log/formats.js';
import {
  type AnswerColumn,
  answerColumns,
  defaultReadOptions,
  type ReadOptions,
} from '../../services/answer-log/options.js';
import { skillSeparator } from '../../services/answer-log/rows.js';
import { timeFormats } from '../../services/answer-log/times.js';
import {
  choiceOption,
  flag,
  type OptionValues,
  option,
  timeOption,
  UsageError,
} from '../support/arguments.js';

const formatNames = ['auto', ...logFormats.map(({ name }) => name), customFormat.name];
const encodings = 'utf-8, latin1, windows-1250 to windows-1258, or iso-8859-2 to iso-8859-16';
const singleByte = /^(utf-?8|latin1|windows-125[0-8]|iso-8859-(?:[1-9]|1[0-6]))$/i;

const readingOptions = {
  format: choiceOption('NAME', 'format of FILE, listed below (default: auto, by the header)', formatNames),
  columns: option(
    'LIST',
    'columns of FILE, for example user_id="Student ID",skill_id=Topic,correct=Score',
    parseColumns,
  ),
  kc: option('NAME', 'knowledge component model of DataShop and KDD Cup files (default: the first)', String),
  'skill-separator': option(
    'TEXT',
    'text between the skills of a question (default: ~~; empty: one skill)',
    String,
  ),
  delimiter: option('SIGN', 'column separator, one character or "tab" (default: detected)', parseDelimiter),
  encoding: option('NAME', `${encodings} (default: utf-8)`, parseEncoding),
  decimal: choiceOption('SIGN', 'decimal sign, "." or "," (default: .)', ['.', ',']),
  'time-format': choiceOption(
    'NAME',
    `s, ms or us: unit of numeric times; mdy or dmy: dates such as 3/4/2026 (default: auto: RFC 3339,
YYYY-MM-DD hh:mm:ss, DD.MM.YYYY, and numbers in the unit that gives plausible dates)`,
    timeFormats,
  ),
  timezone: option(
    'ZONE',
    'time zone of times without one, for example Europe/Berlin (default: UTC)',
    parseTimezone,
  ),
  start: timeOption(
    'DATE',
    'numeric times count from this time, YYYY-MM-DD or RFC 3339 (default: 1970-01-01)',
    (ms) => findTimeProblem(ms, Date.now()),
  ),
  'correct-values': option(
    'LIST',
    'values of a right answer (default: 1, true, t, correct, y, yes)',
    parseList,
  ),
  'incorrect-values': option(
    'LIST',
    'values of a wrong answer (default: 0, false, f, incorrect, wrong, n, no, hint)',
    parseList,
  ),
  'min-score': option('N', 'partial credit from N on is a right answer (default: only 1)', parseScore),
  'first-attempts-only': flag('leave out repeated attempts at a step (DataShop transactions)'),
  'originals-only': flag('leave out scaffolding questions (ASSISTments)'),
  'sort-by': option(
    'COLUMN',
    'sort the rows by this column of FILE: numbers by value, dates by time, other texts by bytes',
    String,
  ),
};

/** Options that say how to read an answer log. All commands that read one have them. */
export const logOptions = {
  ...readingOptions,
  mapping: option(
    'JSON',
    'file with these options, for repeated use: {"columns": {"user_id": "Student ID"}, "decimal": ","}',
    readMapping,
  ),
};

type ReadingValues = OptionValues<typeof readingOptions>;
type LogOptionValues = OptionValues<typeof logOptions>;

/** The command line takes precedence over the mapping file. */
export function toReadOptions({ mapping: file, ...given }: LogOptionValues): ReadOptions {
  const mapping = file?.values;
  const isGiven = ([name, value]: [string, unknown]): boolean =>
    name in readingOptions && value !== null && value !== false;
  const values = [...Object.entries(mapping ?? {}), ...Object.entries(given).filter(isGiven)];
  const toCamelCase = (name: string) => name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  const options: ReadOptions = {
    ...defaultReadOptions,
    ...Object.fromEntries(values.map(([name, value]) => [toCamelCase(name), value])),
    columns: { ...mapping?.columns, ...given.columns },
  };
  return { ...options, format: options.format === 'auto' ? null : options.format };
}

/**
 * How a file is read, as text that is equal for equal readings: the format and the options that change it. '' for
 * Skilltrace's own format. Without `start`.
 */
export function describeReading(options: ReadOptions, format: LogFormat, models: readonly string[]): string {
  const columns = Object.entries(options.columns).filter(
    ([column, name]) => format.columns[column as AnswerColumn] !== name,
  );
  const defaults: Readonly<Partial<Record<keyof ReadOptions, unknown>>> = {
    ...{ kc: models[0], timezone: 'UTC', encoding: format.encoding ?? 'utf-8' },
    ...{ skillSeparator: format.skillSeparator ?? skillSeparator, timeFormat: format.timeFormat ?? 'auto' },
    sortBy: format.sortBy?.join(),
  };
  // A file has columns with one delimiter only.
  const chosen = {
    ...options,
    columns: Object.fromEntries(columns),
    format: null,
    start: null,
    delimiter: null,
  };
  const isChanged = (name: keyof ReadOptions): boolean =>
    !isDeepStrictEqual(chosen[name], defaultReadOptions[name]) && chosen[name] !== defaults[name];
  const changed = (Object.keys(defaultReadOptions) as (keyof ReadOptions)[]).filter(isChanged);
  const parts = changed.map((name) => `${name}=${JSON.stringify(chosen[name])}`);
  if (format.name !== 'skilltrace') parts.unshift(format.name);
  return parts.map((part) => `\n${part}`).join('');
}

function parseColumns(text: string, name: string): ReadOptions['columns'] {
  const columns = parseColumnList(text);
  const known = answerColumns.filter((column) => text.includes(`${column}=`)) as readonly string[];
  const unknown = Object.keys(columns).find((column) => !known.includes(column));
  if (unknown === undefined) return columns;
  throw new UsageError(
    `${name} ${JSON.stringify(unknown)} must be NAME=COLUMN, with a NAME of ${answerColumns.join(', ')}`,
  );
}

/** The keys are the names of options with underscores. */
function readMapping(path: string, name: string) {
  const values: Partial<ReadingValues> = Object.fromEntries(
    Object.entries(parseMapping(path, name)).map(([key, value]) => {
      const found = Object.entries(readingOptions).find(([one]) => one.replaceAll('-', '_') === key);
      if (found === undefined) throw new UsageError(`${name} ${path}: unknown key ${JSON.stringify(key)}`);
      const [option, { parse, placeholder }] = found;
      const label = `${name} ${path}: ${key}`;
      const isFlag = placeholder === '';
      const given = isFlag ? value : toText(value, option === 'columns');
      if (typeof given === (isFlag ? 'boolean' : 'string')) return [option, parse(given as string, label)];
      throw new UsageError(`${label} must be a text, a number, true or a list`);
    }),
  );
  return { path: realpathSync(path), values };
}

/** As on the command line; null for other values. */
function toText(value: unknown, isColumns: boolean): string | null {
  if (value === null || typeof value === 'boolean') return null;
  if (typeof value !== 'object' || Array.isArray(value)) return String(value);
  const pairs = Object.entries(value).map((pair) => pair.join('='));
  return isColumns ? pairs.join() : null;
}

function parseMapping(path: string, name: string): object {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : cause;
    throw new UsageError(`${name} ${path} cannot be read as JSON: ${reason}`);
  }
  throw new UsageError(`${name} ${path} must be a JSON object`);
}

function parseDelimiter(text: string, name: string): string {
  const sign = text === 'tab' || text === '\\t' ? '\t' : text;
  if (/^[\x20-\x7e\t]$/.test(sign) && sign !== '"') return sign;
  throw new UsageError(`${name} ${JSON.stringify(text)} must be one ASCII character, or tab`);
}

function parseEncoding(text: string, name: string): string {
  if (singleByte.test(text)) return text.toLowerCase().replace('utf8', 'utf-8');
  throw new UsageError(
    `${name} ${JSON.stringify(text)} must be ${encodings}. Convert other files with iconv`,
  );
}

function parseTimezone(text: string, name: string): string {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    throw new UsageError(
      `${name} ${JSON.stringify(text)} must be an IANA time zone, for example Europe/Berlin`,
    );
  }
}

function parseList(text: string): string[] {
  return text.split(',').map((value) => value.trim());
}

function parseScore(text: string, name: string): number {
  const score = text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isFinite(score)) return score;
  throw new UsageError(`${name} ${JSON.stringify(text)} must be a number`);
}

const widest = Math.max(...logFormats.map(({ name }) => name.length));

/** The same in the help of every command that reads an answer log. */
export const logHelp = `FILE is CSV, TSV or NDJSON, plain or compressed with gzip, zstd or zip; or Parquet; or the folder of EdNet.
The content determines the format, not the name:
${logFormats.map(({ name, title }) => `  ${name.padEnd(widest)}  ${title}`).join('\n')}

Columns, from FILE or by --columns; empty or missing if optional:
  user_id              required
  correct              required; a result such as 1, 0, true, false, CORRECT, INCORRECT or HINT
  skill_id             required; one id, or several with --skill-separator if the question needs several skills
  skill_ids            instead of skill_id: a JSON list of ids, at most 10
  item_id              the question; NAME1+NAME2 joins two columns
  ts                   time of the answer
  response_time_s      0 to 86400, with decimals
  order                number that sorts the answers of a learner
  fold                 evaluate and backtest: integer of the learner's fold
  question_difficulty  evaluate and backtest: -3 to 3
--dry-run shows how FILE is read. docs/answer-log-formats.md describes the formats.`;
