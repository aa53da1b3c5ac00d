/** Reads the answers of a file into columns. */

import { evaluateColumns, readLogRow } from '../lab/evaluate/rows.js';
import { type AnswerTable, createAnswerTable } from '../lab/evaluate/table.js';
import { grouped } from '../lab/report/numbers.js';
import { StartError } from '../lifecycle.js';
import type { CommandContext } from './command.js';
import { type ImportFile, openFile, readPages } from './import-file.js';
import type { Progress } from './import-report.js';

/** Rows that do not fit. */
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

/** What the user should know of the rows, as lines; none where all is well. */
function notesOn({ learners, folds, foldConflicts }: AnswerTable, leftOut: LeftOut): string[] {
  const notes: string[] = [];
  const { rows, examples } = leftOut;
  if (rows > 0)
    notes.push(
      `${grouped(rows)} ${rows === 1 ? 'row does' : 'rows do'} not fit and are left out:`,
      ...examples,
    );
  if (rows > examples.length) notes.push(`  and ${grouped(rows - examples.length)} more`);
  if (foldConflicts > 0) {
    notes.push(
      `${grouped(foldConflicts)} rows tell another fold than their learner's first: the first one holds`,
    );
  }
  const without = learners.all.length - folds.size;
  if (folds.size > 0 && without > 0) {
    notes.push(`${grouped(without)} learners have no fold: theirs is 1 to 5 by a hash of user_id`);
  }
  return notes;
}
