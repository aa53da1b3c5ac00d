/** Splits the answers of a file into a training log and a test log. */
import { createHash } from 'node:crypto';
import type { AnswerLog } from '../../domain/base/answer-log.js';
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
  const places = placesByLearner(table);
  return {
    training: gather(table, places, (learner) => folds[learner] !== testFold),
    test: gather(table, places, (learner) => folds[learner] === testFold),
  };
}

/** Folds of learners whose rows have none. */
const hashFolds = 5;

/** The fold of each learner: as in the file, else 1 to 5 by SHA-256 of the id, the same on every machine. */
export const foldsOf = ({ learners, folds }: AnswerTable): Uint16Array =>
  Uint16Array.from(learners.all, (userId, learner) => folds.get(learner) ?? hashFold(userId));

const hashFold = (userId: string): number =>
  1 + (createHash('sha256').update(`fold:${userId}`).digest().readUInt32BE(0) % hashFolds);

/** Rows by learner: those of learner l are `rows[starts[l]]` to `rows[starts[l + 1] - 1]`, in the learner's order. */
interface Places {
  readonly starts: Uint32Array;
  readonly rows: Uint32Array;
}

function placesByLearner(table: AnswerTable): Places {
  const learner = table.columns.learner.subarray(0, table.rows);
  const starts = new Uint32Array(table.learners.all.length + 1);
  for (const index of learner) starts[index + 1] = (starts[index + 1] as number) + 1;
  for (let i = 1; i < starts.length; i++) starts[i] = (starts[i] as number) + (starts[i - 1] as number);
  const next = starts.slice();
  const rows = new Uint32Array(table.rows);
  learner.forEach((index, row) => {
    const place = next[index] as number;
    rows[place] = row;
    next[index] = place + 1;
  });
  for (let l = 0; l + 1 < starts.length; l++) sortAnswers(table, rows.subarray(starts[l], starts[l + 1]));
  return { starts, rows };
}

/** By `order` where all the learner's rows have one, else by time, else as they are in the file. */
function sortAnswers({ columns: { order, at } }: AnswerTable, rows: Uint32Array): void {
  const complete = (key: Float64Array): boolean => rows.every((row) => !Number.isNaN(key[row]));
  const key = complete(order) ? order : complete(at) ? at : null;
  if (key === null) return;
  rows.sort((a, b) => (key[a] as number) - (key[b] as number) || a - b);
}

const shared = (bytes: number): SharedArrayBuffer => new SharedArrayBuffer(bytes);

/** The answers of some learners as a log. */
function gather(table: AnswerTable, places: Places, takes: (learner: number) => boolean): AnswerLog {
  const learners = table.learners.all.map((_, learner) => learner).filter(takes);
  const sizes = learners.map(
    (learner) => (places.starts[learner + 1] as number) - (places.starts[learner] as number),
  );
  const answers = sizes.reduce((sum, size) => sum + size, 0);
  const log: AnswerLog = {
    starts: new Uint32Array(shared(4 * (learners.length + 1))),
    skill: new Uint32Array(shared(4 * answers)),
    item: new Uint32Array(shared(4 * answers)),
    correct: new Uint8Array(shared(answers)),
    at: new Float64Array(shared(8 * answers)),
    seconds: new Float32Array(shared(4 * answers)),
    difficulty: new Float32Array(shared(4 * answers)),
    skills: table.skills.all.length,
    items: table.items.all.length,
  };
  learners.forEach((learner, index) => {
    const rows = places.rows.subarray(places.starts[learner], places.starts[learner + 1]);
    log.starts[index + 1] = copyAnswers(table, rows, log, log.starts[index] as number);
  });
  return log;
}

/** @returns the place after the last */
function copyAnswers({ columns }: AnswerTable, rows: Uint32Array, log: AnswerLog, start: number): number {
  // An answer without a time is taken for simultaneous with the one before it.
  const firstTimed = rows.find((row) => !Number.isNaN(columns.at[row]));
  let at = firstTimed === undefined ? 0 : (columns.at[firstTimed] as number);
  let place = start;
  for (const row of rows) {
    const own = columns.at[row] as number;
    if (!Number.isNaN(own)) at = own;
    log.skill[place] = columns.skill[row] as number;
    log.item[place] = columns.item[row] as number;
    log.correct[place] = columns.correct[row] as number;
    log.at[place] = at;
    log.seconds[place] = columns.seconds[row] as number;
    log.difficulty[place] = columns.difficulty[row] as number;
    place++;
  }
  return place;
}
