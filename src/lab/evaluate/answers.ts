import { createHash } from 'node:crypto';
import { type AnswerLog, numberSkillSets, sharedArrays } from '../../domain/base/answer-log.js';
import { mapNonEmpty, type NonEmpty } from '../../domain/base/common.js';
import { combineIds } from '../../domain/tracing/course.js';
import { createInterner } from '../../lists.js';
import type { FileAnswer } from '../../services/answer-log/rows.js';

export type AnswerTable = ReturnType<typeof createAnswerTable>;

export function createAnswerTable() {
  const [learners, skills, items] = [createInterner([]), createInterner([]), createInterner([''])];
  const [sets, members] = [createInterner([]), [] as NonEmpty<number>[]];
  let foldConflicts = 0;
  const folds = new Map<number, number>();
  /** 64 bytes per answer, in file order. NaN: not reported. */
  const columns = {
    /** `set`: index in `sets`; `item`: from 1; 0: not reported. */
    ...{ learner: [] as number[], set: [] as number[], item: [] as number[], correct: [] as number[] },
    /** `at`: Unix milliseconds. */
    ...{ order: [] as number[], at: [] as number[], seconds: [] as number[], difficulty: [] as number[] },
  };

  function setFold(learner: number, fold: number): void {
    const before = folds.get(learner) ?? fold;
    folds.set(learner, before);
    if (before !== fold) foldConflicts++;
  }

  function add({ userId, skillIds, isCorrect, itemId, ...answer }: FileAnswer): void {
    const learner = learners.indexOf(userId);
    if (answer.fold !== null) setFold(learner, answer.fold);
    columns.learner.push(learner);
    const set = sets.indexOf(combineIds(skillIds));
    members[set] ??= mapNonEmpty(skillIds, skills.indexOf);
    columns.set.push(set);
    columns.item.push(items.indexOf(itemId ?? ''));
    columns.correct.push(isCorrect ? 1 : 0);
    columns.order.push(answer.order ?? Number.NaN);
    columns.at.push(answer.at ?? Number.NaN);
    columns.seconds.push(answer.seconds ?? Number.NaN);
    columns.difficulty.push(answer.difficulty ?? Number.NaN);
  }

  return {
    columns,
    learners: learners.ids,
    skills: skills.ids,
    /** Skill indices. */
    sets: members as readonly NonEmpty<number>[],
    /** Index 0: no item. */
    items: items.ids,
    /** By learner, from the first row with a fold. */
    folds: folds as ReadonlyMap<number, number>,
    /** Rows with another fold than the learner's first one. */
    foldConflicts: () => foldConflicts,
    add,
  };
}

/** Number skills and items alike. */
export interface Split {
  readonly training: AnswerLog;
  readonly test: AnswerLog;
  /** Index in the table, by learner of `test`. */
  readonly learners: readonly number[];
  /** Null: `training` is `test`. */
  readonly fold: number | null;
}

/**
 * Separate logs without common learners, so that training cannot read test answers.
 * @param folds by learner
 */
export function splitByFold(table: AnswerTable, folds: Uint16Array, fold: number): Split {
  const rowsOf = listRows(table);
  const inTest = (_: unknown, learner: number): boolean => folds[learner] === fold;
  const learners = [...rowsOf.keys()].filter(inTest);
  const others = rowsOf.filter((rows, learner) => !inTest(rows, learner));
  return { training: buildLog(table, others), test: buildLog(table, rowsOf.filter(inTest)), learners, fold };
}

export function splitInSample(table: AnswerTable): Split {
  const log = buildLog(table, listRows(table));
  return { training: log, test: log, learners: [...table.learners.keys()], fold: null };
}

export const countAnswers = ({ correct, starts }: AnswerLog) => ({
  ...{ rows: correct.length, learners: starts.length - 1 },
});

/** By learner, in order. */
function listRows(table: AnswerTable): number[][] {
  const rowsOf = table.learners.map((): number[] => []);
  for (const [row, learner] of table.columns.learner.entries()) rowsOf[learner]?.push(row);
  for (const rows of rowsOf) sortAnswers(table, rows);
  return rowsOf;
}

const hashFolds = 5;

/** From the file, else 1 to 5 by a hash of the id. */
export const assignFolds = ({ learners, folds }: Pick<AnswerTable, 'learners' | 'folds'>): Uint16Array =>
  Uint16Array.from(learners, (userId, learner) => folds.get(learner) ?? computeHashFold(userId));

const computeHashFold = (userId: string): number =>
  1 + (createHash('sha256').update(`fold:${userId}`).digest().readUInt32BE(0) % hashFolds);

/** Sorts by `order`, or by time, if all rows of the learner have one; else keeps the file order. */
function sortAnswers({ columns: { order, at } }: AnswerTable, rows: number[]): void {
  const key = [order, at].find((column) => rows.every((row) => !Number.isNaN(column[row])));
  if (key !== undefined) rows.sort((a, b) => (key[a] as number) - (key[b] as number));
}

/** @param rowsOf by learner, in order */
function buildLog(
  { columns, skills, sets, items }: AnswerTable,
  rowsOf: readonly (readonly number[])[],
): AnswerLog {
  const { numbers, members } = numberSkillSets(sets, skills.length);
  const rows = rowsOf.flat();
  const fill = <Column extends Uint8Array | Uint32Array | Float32Array>(
    column: Column,
    source: readonly number[],
  ): Column => {
    for (const [place, row] of rows.entries()) column[place] = source[row] as number;
    return column;
  };
  const starts = sharedArrays.counts(rowsOf.length + 1);
  const at = sharedArrays.doubles(rows.length);
  for (const [learner, own] of rowsOf.entries()) {
    const start = starts[learner] as number;
    starts[learner + 1] = start + own.length;
    at.set(fillTimes(columns.at, own), start);
  }
  const skillSets = columns.set.map((set) => numbers[set] as number);
  return {
    ...{ starts, at, members, skills: skills.length, items: items.length - 1 },
    skill: fill(sharedArrays.counts(rows.length), skillSets),
    item: fill(sharedArrays.counts(rows.length), columns.item),
    correct: fill(sharedArrays.bytes(rows.length), columns.correct),
    seconds: fill(sharedArrays.floats(rows.length), columns.seconds),
    difficulty: fill(sharedArrays.floats(rows.length), columns.difficulty),
  };
}

/** An answer without a time gets the time of the previous one. */
function fillTimes(at: readonly number[], rows: readonly number[]): number[] {
  const times = rows.map((row) => at[row] as number);
  let last = times.find((time) => !Number.isNaN(time)) ?? 0;
  return times.map((time) => {
    if (!Number.isNaN(time)) last = time;
    return last;
  });
}
