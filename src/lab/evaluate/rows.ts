/** What a row of an evaluated file must be: a row of an import, with the split and the difficulty beside it. */
import {
  checkRow,
  type FileColumn,
  importColumns,
  isAbsent,
  numberOf,
  type RawRow,
  shown,
} from '../../services/import/rows.js';

export const evaluateColumns: readonly FileColumn[] = [...importColumns, 'fold', 'question_difficulty'];

/** One answer of a file. Null: the file says nothing. */
export interface LogRow {
  readonly userId: string;
  readonly skillId: string;
  readonly itemId: string | null;
  readonly isCorrect: boolean;
  readonly order: number | null;
  /** Unix milliseconds. */
  readonly at: number | null;
  readonly seconds: number | null;
  /** Logits, -3 to 3. */
  readonly difficulty: number | null;
  readonly fold: number | null;
}

export const maxFold = 65_534;
const maxDifficulty = 3;

/**
 * @param now against which times are checked, Unix milliseconds
 * @returns the row, or what is wrong with it
 */
export function readLogRow(row: RawRow, now: number): LogRow | string {
  const { fields } = row;
  if (typeof fields === 'string') return fields;
  const checked = checkRow(row, { tenant: 'default', startMs: 0, importedAt: now }, now);
  if (typeof checked === 'string') return checked;
  const fold = boundedNumber('fold', fields.fold, 0, maxFold);
  if (typeof fold === 'string') return fold;
  if (fold !== null && !Number.isInteger(fold)) return `fold ${shown(fields.fold)} must be an integer`;
  const difficulty = boundedNumber(
    'question_difficulty',
    fields.question_difficulty,
    -maxDifficulty,
    maxDifficulty,
  );
  if (typeof difficulty === 'string') return difficulty;
  const { event, order } = checked;
  return {
    userId: event.userId,
    skillId: event.skillId,
    itemId: event.itemId,
    isCorrect: event.isCorrect,
    order,
    at: isAbsent(fields.ts) ? null : event.occurredAt,
    seconds: event.timeSpentSeconds,
    difficulty,
    fold,
  };
}

/** @returns null for an absent value, a text for one that is no number or out of range */
function boundedNumber(name: string, value: unknown, low: number, high: number): number | null | string {
  if (isAbsent(value)) return null;
  const number = numberOf(value);
  const fits = number !== null && number >= low && number <= high;
  return fits ? number : `${name} ${shown(value)} must be a number from ${low} to ${high}`;
}
