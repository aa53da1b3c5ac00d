/** What `evaluate` and `backtest` share: their options, reading a file of answers, training, and the page. */
import { accessSync, constants, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { createFitPool } from '../compute/fit-pool.js';
import type { AnswerLog } from '../domain/base/answer-log.js';
import { evaluateColumns, maxFold, readLogRow } from '../lab/evaluate/rows.js';
import { type Split, splitByFold } from '../lab/evaluate/split.js';
import { type AnswerTable, createAnswerTable } from '../lab/evaluate/table.js';
import { type Trained, trainModels } from '../lab/evaluate/train.js';
import { grouped } from '../lab/report/numbers.js';
import { type Closers, StartError } from '../lifecycle.js';
import { onlyFile, parseArguments, readInteger, usageOf } from './arguments.js';
import type { CommandContext, Progress } from './command.js';
import { type ImportFile, openFile, readPages } from './import-file.js';

export interface LabArguments {
  readonly file: string;
  /** null: none was given. */
  readonly fold: number | null;
  /** Path of the page; null: no page. */
  readonly report: string | null;
  /** null: as many as are worth it. */
  readonly threads: number | null;
  readonly json: boolean;
  /** The command line, for the page. */
  readonly command: string;
}

const maxThreads = 256;

/** Lines of --help on the options that both have. */
export const sharedOptionsHelp = `  --report HTML  writes a page with plots and tables; it opens without a network
  --threads N    threads of the fit, 1 to ${maxThreads} (default: 1, from a million answers on all cores)
  --json         the figures as one line of JSON
  --help         this text`;

/** @returns the arguments, or null if help was asked for. @throws StartError */
export function readLabArguments(name: string, argv: readonly string[]): LabArguments | null {
  const usage = usageOf(`npm run ${name} -- FILE [options]`);
  const { values, positionals } = parseArguments(usage, argv, {
    fold: { type: 'string' },
    report: { type: 'string' },
    threads: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  });
  if (values.help) return null;
  const { fold, report, threads, json } = values;
  return {
    file: onlyFile(usage, positionals),
    fold: fold === undefined ? null : readInteger(usage, '--fold', fold, 0, maxFold),
    report: report === undefined ? null : checkReportPath(report),
    threads: threads === undefined ? null : readInteger(usage, '--threads', threads, 1, maxThreads),
    json,
    command: ['npm run', name, '--', ...argv].join(' '),
  };
}

function checkReportPath(path: string): string {
  const target = resolve(path);
  try {
    accessSync(dirname(target), constants.W_OK);
    const there = statSync(target, { throwIfNoEntry: false });
    if (there?.isDirectory()) throw new Error('it is a folder');
    if (there !== undefined) accessSync(target, constants.W_OK);
    return target;
  } catch (error) {
    throw unwritableReport(path, error);
  }
}

function unwritableReport(path: string, cause: unknown): StartError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StartError(`--report ${path} cannot be written: ${reason}`, { cause });
}

/** The path was checked before the run, but a disk may be full by now. The figures are printed by then. */
export function writeReport(path: string, page: string): void {
  try {
    writeFileSync(path, page);
  } catch (cause) {
    throw unwritableReport(path, cause);
  }
}

export interface LeftOut {
  rows: number;
  /** Line and reason of the first few. */
  readonly examples: string[];
}

const shownExamples = 5;

/** @throws StartError for a file that cannot be read to its end, or has no row that fits */
async function readTable(
  file: ImportFile,
  progress: Progress,
  stopped: () => boolean,
): Promise<{ table: AnswerTable; leftOut: LeftOut }> {
  const table = createAnswerTable();
  const leftOut: LeftOut = { rows: 0, examples: [] };
  const now = Date.now();
  let bytes = 0;
  const pages = readPages(
    file,
    (chunk) => {
      bytes += chunk.length;
    },
    evaluateColumns,
  );
  for await (const page of pages) {
    if (stopped()) break;
    for (const raw of page) {
      const row = readLogRow(raw, now);
      if (typeof row === 'string') leaveOut(leftOut, raw.line, row);
      else table.add(row);
    }
    progress.show(
      `reading: ${Math.floor((100 * bytes) / Math.max(1, file.bytes))} %, ${grouped(table.rows)} answers`,
    );
  }
  if (table.rows === 0 && !stopped()) {
    throw new StartError([`${file.path} has no answer that can be used`, ...leftOut.examples].join('\n'));
  }
  return { table, leftOut };
}

function leaveOut(leftOut: LeftOut, line: number, reason: string): void {
  leftOut.rows++;
  if (leftOut.examples.length < shownExamples) leftOut.examples.push(`  line ${line}: ${reason}`);
}

/**
 * Reads the answers of a file, with what its user should know of them on standard error.
 *
 * @returns null if a signal came. @throws StartError as `readTable`
 */
export async function readAnswers(
  path: string,
  { closers, stderr }: CommandContext,
  progress: Progress,
): Promise<{ table: AnswerTable; leftOut: LeftOut } | null> {
  const stopped = (): boolean => closers.closing;
  const read = await readTable(openFile(path), progress, stopped);
  if (stopped()) return null;
  progress.show('');
  for (const note of notesOn(read.table, read.leftOut)) stderr.write(`${note}\n`);
  return read;
}

const counted = (count: number, one: string, several: string): string =>
  `${grouped(count)} ${count === 1 ? one : several}`;

/** What the user should know of the rows, as lines; none where all is well. */
function notesOn({ learners, folds, foldConflicts }: AnswerTable, leftOut: LeftOut): string[] {
  const notes: string[] = [];
  const { rows, examples } = leftOut;
  if (rows > 0) notes.push(`${counted(rows, 'row does', 'rows do')} not fit and are left out:`, ...examples);
  if (rows > examples.length) notes.push(`  and ${grouped(rows - examples.length)} more`);
  if (foldConflicts > 0) {
    notes.push(
      `${counted(foldConflicts, 'row has', 'rows have')} another fold than their learner's first: the first one holds`,
    );
  }
  const without = learners.all.length - folds.size;
  if (folds.size > 0 && without > 0) {
    notes.push(`${counted(without, 'learner has', 'learners have')} no fold: 1 to 5 by a hash of user_id`);
  }
  return notes;
}

/** @throws StartError where there is nobody to predict, or nobody to learn from */
export function divide(table: AnswerTable, folds: Uint16Array, fold: number): Split {
  if (!folds.includes(fold)) {
    throw new StartError(
      `No learner is in fold ${fold}; there are learners in ${foldsPresent(folds).join(', ')}`,
    );
  }
  const split = splitByFold(table, folds, fold);
  if (split.training.correct.length > 0) return split;
  throw new StartError(`Every learner is in fold ${fold}, so that nobody is left to train on`);
}

/** Each once, ascending. */
export const foldsPresent = (folds: Uint16Array): number[] => [...new Set(folds)].sort((a, b) => a - b);

/** Below this a second thread takes longer to start than it saves. */
const manyAnswers = 1_000_000;

export const threadsFor = ({ correct }: AnswerLog): number =>
  correct.length < manyAnswers ? 1 : availableParallelism();

/**
 * Starts threads to train in, so that this one stays awake for signals.
 *
 * @returns trains on a log; null if a signal came
 */
export function openTrainer(
  closers: Closers,
  threads: number,
  progress: Progress,
): (log: AnswerLog) => Promise<Trained | null> {
  const pool = createFitPool({ threads, redisUrl: '', clickhouseUrl: '', beside: false });
  closers.add('threads of the fit', () => pool.close());
  return async (log) => {
    try {
      return await trainModels(log, pool, (step) => progress.show(`fitting: ${step}`));
    } catch (error) {
      // Stopped threads leave their work undone.
      if (closers.closing) return null;
      throw error;
    }
  };
}
