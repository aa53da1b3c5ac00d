import { occurredAtProblem, parseTime } from '../contracts/time.js';
import { StartError } from '../lifecycle.js';
import { onlyFile, parseArguments, readTenant, usageOf } from './arguments.js';

export interface ImportArguments {
  readonly file: string;
  readonly tenant: string;
  /** Unix milliseconds; null where it was not given. */
  readonly startMs: number | null;
  readonly again: boolean;
  readonly json: boolean;
}

export const importHelp = `Usage: npm run import -- FILE [options]

Counts every answer of FILE as if it had just come in, in the order of the file, learner by learner.

FILE is CSV with a header, or NDJSON, both also as gzip; which of them shows in its first bytes, whatever
its name. Columns: user_id, skill_id, correct, and optionally item_id, order, ts, response_time_s, each of
which may be empty in a row; others are ignored.
  correct          1, 0, true or false
  ts               RFC 3339, or Unix seconds; a row without it has the time of the import
  order            only checked: the summary tells how many rows go backwards within their learner
  response_time_s  0 to 86400, fractions allowed

Options:
  --tenant T    whose answers these are (default: default)
  --start DATE  YYYY-MM-DD or RFC 3339: a numeric ts is the number of seconds since then
  --again       import a file that was imported before once more, counting every row again
  --json        summary as one line of JSON
  --help        this text

An import that was stopped or killed goes on where it was when the same command is given again, and counts
no row twice. Rows that do not fit go with line number and reason to a file under DATA_DIR/imports; the
import goes on. It uses the servers of the service that runs on DATA_DIR, or starts its own.
`;

const usage = usageOf('npm run import -- FILE [options]');

/** @returns the arguments, or null if help was asked for. @throws StartError */
export function readImportArguments(argv: readonly string[], now: number): ImportArguments | null {
  const { values, positionals } = parseArguments(usage, argv, {
    tenant: { type: 'string', default: 'default' },
    start: { type: 'string' },
    again: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (values.help) return null;
  return {
    file: onlyFile(usage, positionals),
    tenant: readTenant(values.tenant),
    startMs: values.start === undefined ? null : readStart(values.start, now),
    again: values.again,
    json: values.json,
  };
}

function readStart(text: string, now: number): number {
  const ms = parseTime(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  const problem =
    ms === null ? 'must be a date (YYYY-MM-DD) or an RFC 3339 time' : occurredAtProblem(ms, now);
  if (ms === null || problem !== null) throw new StartError(`--start ${JSON.stringify(text)} ${problem}`);
  return ms;
}
