/** Splits the answers of a file into a training log and a test log. */
import { createHash } from 'node:crypto';
import { type AnswerLog, shared } from '../../domain/base/answer-log.js';
import type { AnswerTable } from './table.js';

/** Two logs without a common learner; skills and items have the same numbers in both. */
export interface Split {
  readonly training: AnswerLog;
  readonly test: AnswerLog;
}

/**
 * Divides the answers by the fold of their learner. Training gets a log of its own, so that nothing it does could
 * reach an answer of a test learner.
 *
 * @param folds of the learners, by their number
 */
export function splitByFold(table: AnswerTable, folds: Uint16Array, testFold: number): Split {
  const rowsOf = table.learners.map((): number[] => []);
  for (const [row, learner] of table.columns.learner.entries()) rowsOf[learner]?.push(row);
  for (const rows of rowsOf) sortAnswers(table, rows);
  return {
    training: gather(
      table,
      rowsOf.filter((_, learner) => folds[learner] !== testFold),
    ),
    test: gather(
      table,
      rowsOf.filter((_, learner) => folds[learner] === testFold),
    ),
  };
}

/** Folds of learners whose rows have none. */
const hashFolds = 5;

/** The fold of each learner: as in the file, else 1 to 5 by SHA-256 of the id, the same on every machine. */
export const foldsOf = ({ learners, folds }: Pick<AnswerTable, 'learners' | 'folds'>): Uint16Array =>
  Uint16Array.from(learners, (userId, learner) => folds.get(learner) ?? hashFold(userId));

const hashFold = (userId: string): number =>
  1 + (createHash('sha256').update(`fold:${userId}`).digest().readUInt32BE(0) % hashFolds);

/** By `order` where all the learner's rows have one, else by time, else as they are in the file. */
function sortAnswers({ columns: { order, at } }: AnswerTable, rows: number[]): void {
  const key = [order, at].find((column) => rows.every((row) => !Number.isNaN(column[row])));
  if (key !== undefined) rows.sort((a, b) => (key[a] as number) - (key[b] as number));
}

/** The answers of some learners as a log. @param rowsOf each learner's rows in their order */
function gather({ columns, skills, items }: AnswerTable, rowsOf: readonly (readonly number[])[]): AnswerLog {
  const rows = rowsOf.flat();
  const fill = <Column extends Uint8Array | Uint32Array | Float32Array>(
    column: Column,
    source: readonly number[],
  ): Column => {
    for (const [place, row] of rows.entries()) column[place] = source[row] as number;
    return column;
  };
  const starts = shared.counts(rowsOf.length + 1);
  const at = shared.doubles(rows.length);
  for (const [learner, own] of rowsOf.entries()) {
    const start = starts[learner] as number;
    starts[learner + 1] = start + own.length;
    at.set(timesOf(columns.at, own), start);
  }
  return {
    starts,
    at,
    skill: fill(shared.counts(rows.length), columns.skill),
    item: fill(shared.counts(rows.length), columns.item),
    correct: fill(shared.bytes(rows.length), columns.correct),
    seconds: fill(shared.floats(rows.length), columns.seconds),
    difficulty: fill(shared.floats(rows.length), columns.difficulty),
    skills: skills.length,
    items: items.length,
  };
}

/** An answer without a time is taken for simultaneous with the one before it. */
function timesOf(at: readonly number[], rows: readonly number[]): number[] {
  const times = rows.map((row) => at[row] as number);
  let last = times.find((time) => !Number.isNaN(time)) ?? 0;
  return times.map((time) => {
    if (!Number.isNaN(time)) last = time;
    return last;
  });
}
