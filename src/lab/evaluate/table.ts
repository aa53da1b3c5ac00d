/** The answers of a file in columns, ids as numbers: 40 bytes an answer beside the ids themselves. */
import type { LogRow } from './rows.js';

/** Texts by number, in the order in which they first came. */
export interface Names {
  readonly all: readonly string[];
  /** The number of a text, from 0. */
  indexOf(name: string): number;
}

/** Columns in the order of the file, of which the first `rows` places count; NaN for what was not reported. */
export interface AnswerColumns {
  readonly learner: Uint32Array;
  readonly skill: Uint32Array;
  /** Number of the item and 1; 0 where none was reported. */
  readonly item: Uint32Array;
  readonly correct: Uint8Array;
  readonly order: Float64Array;
  /** Unix milliseconds. */
  readonly at: Float64Array;
  readonly seconds: Float32Array;
  readonly difficulty: Float32Array;
}

export interface AnswerTable {
  readonly rows: number;
  readonly columns: AnswerColumns;
  readonly learners: Names;
  readonly skills: Names;
  readonly items: Names;
  /** The fold of each learner that has one, by the first row that has it. */
  readonly folds: ReadonlyMap<number, number>;
  /** Rows with another fold than an earlier row of the learner. */
  readonly foldConflicts: number;
  add(row: LogRow): void;
}

const firstCapacity = 1 << 16;

export function createAnswerTable(): AnswerTable {
  const [learners, skills, items] = [createNames(), createNames(), createNames()];
  const folds = new Map<number, number>();
  let columns = columnsOf(firstCapacity);
  let rows = 0;
  let foldConflicts = 0;

  function setFold(learner: number, fold: number): void {
    const before = folds.get(learner);
    if (before === undefined) folds.set(learner, fold);
    else if (before !== fold) foldConflicts++;
  }

  return {
    get rows() {
      return rows;
    },
    get columns() {
      return columns;
    },
    get foldConflicts() {
      return foldConflicts;
    },
    learners,
    skills,
    items,
    folds,
    add: (row) => {
      if (rows === columns.learner.length) columns = grown(columns);
      const learner = learners.indexOf(row.userId);
      if (row.fold !== null) setFold(learner, row.fold);
      columns.learner[rows] = learner;
      columns.skill[rows] = skills.indexOf(row.skillId);
      columns.item[rows] = row.itemId === null ? 0 : 1 + items.indexOf(row.itemId);
      columns.correct[rows] = row.isCorrect ? 1 : 0;
      columns.order[rows] = row.order ?? Number.NaN;
      columns.at[rows] = row.at ?? Number.NaN;
      columns.seconds[rows] = row.seconds ?? Number.NaN;
      columns.difficulty[rows] = row.difficulty ?? Number.NaN;
      rows++;
    },
  };
}

function createNames(): Names {
  const numbers = new Map<string, number>();
  const all: string[] = [];
  return {
    all,
    indexOf: (name) => {
      const known = numbers.get(name);
      if (known !== undefined) return known;
      numbers.set(name, all.length);
      all.push(name);
      return all.length - 1;
    },
  };
}

const columnsOf = (capacity: number): AnswerColumns => ({
  learner: new Uint32Array(capacity),
  skill: new Uint32Array(capacity),
  item: new Uint32Array(capacity),
  correct: new Uint8Array(capacity),
  order: new Float64Array(capacity),
  at: new Float64Array(capacity),
  seconds: new Float32Array(capacity),
  difficulty: new Float32Array(capacity),
});

function grown(old: AnswerColumns): AnswerColumns {
  const wider = columnsOf(2 * old.learner.length);
  wider.learner.set(old.learner);
  wider.skill.set(old.skill);
  wider.item.set(old.item);
  wider.correct.set(old.correct);
  wider.order.set(old.order);
  wider.at.set(old.at);
  wider.seconds.set(old.seconds);
  wider.difficulty.set(old.difficulty);
  return wider;
}
