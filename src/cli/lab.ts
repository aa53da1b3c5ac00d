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
import { StartError } from '../lifecycle.js';
import { argumentsOf, flag, integerOption, option, withFile } from './arguments.js';
import type { CommandContext } from './command.js';
import { openFile, readPages } from './import-file.js';

const maxThreads = 256;

interface LabTexts {
  readonly about: string;
  /** Of the option --fold. */
  readonly fold: string;
  readonly notes: string;
}

/** The arguments of both. What is not given is null. */
export const labArguments = (name: 'evaluate' | 'backtest', { about, fold, notes }: LabTexts) =>
  argumentsOf({
    form: `npm run ${name} -- FILE [options]`,
    about,
    options: {
      fold: integerOption(0, maxFold, fold),
      report: option(
        'HTML',
        'writes a page with plots and tables; it opens without a network',
        checkReportPath,
      ),
      threads: integerOption(
        1,
        maxThreads,
        `threads of the fit, 1 to ${maxThreads} (default: 1, from a million answers on all cores)`,
      ),
      json: flag('the figures as one line of JSON'),
    },
    notes,
    read: (values, given) => ({
      ...withFile(values, given),
      /** The command line, for the page. */
      command: ['npm run', name, '--', ...given.argv].join(' '),
    }),
  });

export type LabArguments = NonNullable<ReturnType<ReturnType<typeof labArguments>['read']>>;

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

/** Rows that do not fit. */
interface LeftOut {
  rows: number;
  /** Line and reason of the first few. */
  readonly examples: string[];
}

const maxExamples = 5;

/**
 * Reads the answers of a file, with what its user should know of them on standard error.
 *
 * @returns the answers and how many rows do not fit; null if a signal came
 * @throws StartError for a file that cannot be read to its end, or has no row that fits
 */
export async function readAnswers(
  path: string,
  { closers, stderr, showProgress }: CommandContext,
): Promise<{ readonly table: AnswerTable; readonly leftOut: number } | null> {
  const file = openFile(path);
  const table = createAnswerTable();
  const leftOut: LeftOut = { rows: 0, examples: [] };
  const now = Date.now();
  let bytes = 0;
  const onBytes = (chunk: Buffer): void => {
    bytes += chunk.length;
  };
  for await (const page of readPages(file, onBytes, evaluateColumns)) {
    if (closers.closing) return null;
    for (const raw of page) {
      const row = readLogRow(raw, now);
      if (typeof row !== 'string') table.add(row);
      else if (++leftOut.rows <= maxExamples) leftOut.examples.push(`  line ${raw.line}: ${row}`);
    }
    const share = Math.floor((100 * bytes) / Math.max(1, file.bytes));
    showProgress(`reading: ${share} %, ${grouped(table.rows)} answers`);
  }
  if (closers.closing) return null;
  showProgress('');
  if (table.rows === 0)
    throw new StartError([`${path} has no answer that can be used`, ...leftOut.examples].join('\n'));
  for (const note of notesOn(table, leftOut)) stderr.write(`${note}\n`);
  return { table, leftOut: leftOut.rows };
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
export function openTrainer({ closers, showProgress }: CommandContext, threads: number) {
  const pool = createFitPool({ threads, redisUrl: '', clickhouseUrl: '', beside: false });
  closers.add('threads of the fit', () => pool.close());
  return async (log: AnswerLog): Promise<Trained | null> => {
    try {
      return await trainModels(log, pool, (step) => showProgress(`fitting: ${step}`));
    } catch (error) {
      // Stopped threads leave their work undone.
      if (closers.closing) return null;
      throw error;
    }
  };
}
