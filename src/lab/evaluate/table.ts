/** The answers of a file in columns, ids as numbers: 64 bytes an answer beside the ids themselves. */
import {
  checkRow,
  type FileColumn,
  importColumns,
  isAbsent,
  numberOf,
  type RawRow,
  shown,
} from '../../services/import/rows.js';

/** A row of an import, with the split and the difficulty beside it. */
export const evaluateColumns: readonly FileColumn[] = [...importColumns, 'fold', 'question_difficulty'];
export const maxFold = 65_534;

export type AnswerTable = ReturnType<typeof createAnswerTable>;

export function createAnswerTable() {
  const [learners, skills, items] = [createNumbers(), createNumbers(), createNumbers()];
  /** Rows with another fold than an earlier row of the learner. */
  let foldConflicts = 0;
  const folds = new Map<number, number>();
  /** In the order of the file; NaN for what was not reported. */
  const columns = {
    learner: [] as number[],
    skill: [] as number[],
    /** Number of the item and 1; 0 where none was reported. */
    item: [] as number[],
    correct: [] as number[],
    order: [] as number[],
    /** Unix milliseconds. */
    at: [] as number[],
    seconds: [] as number[],
    difficulty: [] as number[],
  };

  function setFold(learner: number, fold: number): void {
    const before = folds.get(learner) ?? fold;
    folds.set(learner, before);
    if (before !== fold) foldConflicts++;
  }

  /**
   * @param now against which times are checked, Unix milliseconds
   * @returns what is wrong with the row, which is left out then
   */
  function add(raw: RawRow, now: number): string | null {
    const { fields } = raw;
    if (typeof fields === 'string') return fields;
    const checked = checkRow(raw, { tenant: 'default', startMs: 0, importedAt: now }, now);
    if (typeof checked === 'string') return checked;
    const fold = boundedNumber('fold', fields.fold, 0, maxFold);
    if (typeof fold === 'string') return fold;
    if (!Number.isInteger(fold ?? 0)) return `fold ${shown(fields.fold)} must be an integer`;
    const difficulty = boundedNumber('question_difficulty', fields.question_difficulty, -3, 3);
    if (typeof difficulty === 'string') return difficulty;
    const { event, order } = checked;
    const learner = learners.of(event.userId);
    if (fold !== null) setFold(learner, fold);
    columns.learner.push(learner);
    columns.skill.push(skills.of(event.skillId));
    columns.item.push(event.itemId === null ? 0 : 1 + items.of(event.itemId));
    columns.correct.push(event.isCorrect ? 1 : 0);
    columns.order.push(order ?? Number.NaN);
    columns.at.push(isAbsent(fields.ts) ? Number.NaN : event.occurredAt);
    columns.seconds.push(event.timeSpentSeconds ?? Number.NaN);
    columns.difficulty.push(difficulty ?? Number.NaN);
    return null;
  }

  return {
    columns,
    learners: learners.names,
    skills: skills.names,
    items: items.names,
    /** The fold of each learner that has one, by the first row that has it. */
    folds: folds as ReadonlyMap<number, number>,
    foldConflicts: () => foldConflicts,
    add,
  };
}

/** Texts, and the number of each in the order in which they first came, from 0. */
function createNumbers() {
  const numbers = new Map<string, number>();
  const names: string[] = [];
  return {
    names,
    of: (name: string): number => {
      const number = numbers.get(name) ?? names.push(name) - 1;
      numbers.set(name, number);
      return number;
    },
  };
}

/** @returns null for an absent value, a text for one that is no number or out of range */
function boundedNumber(name: string, value: unknown, low: number, high: number): number | null | string {
  if (isAbsent(value)) return null;
  const number = numberOf(value);
  const fits = number !== null && number >= low && number <= high;
  return fits ? number : `${name} ${shown(value)} must be a number from ${low} to ${high}`;
}
