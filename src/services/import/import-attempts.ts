/** Importing a file of answers: every row is counted, skipped because it was counted before, or rejected. */
import type { Feeder } from './feeder.js';
import { checkRow, type RawRow, type RowRules } from './rows.js';

/** Figures of a run, which grow while it runs. */
export interface ImportFigures {
  /** Rows read, that is all of the file at the end. */
  rows: number;
  /** Counted by this run. */
  counted: number;
  /** Counted by an earlier run. */
  skipped: number;
  rejected: number;
  /** Rows whose `order` is lower than that of an earlier row of their learner. */
  backwards: number;
}

export const newFigures = (): ImportFigures => ({
  rows: 0,
  counted: 0,
  skipped: 0,
  rejected: 0,
  backwards: 0,
});

export interface ImportOptions {
  readonly pages: AsyncIterable<readonly RawRow[]>;
  readonly rules: RowRules;
  /** Everything up to this line was counted or rejected by an earlier run. */
  readonly resumeAfter: number;
  readonly feeder: Feeder;
  readonly figures: ImportFigures;
  readonly reject: (line: number, reason: string) => void;
  /** Hears from time to time up to which line everything is counted or rejected. */
  readonly reached: (line: number) => Promise<void>;
  readonly stopped: () => boolean;
}

/**
 * Sends all rows through the feeder. A resumed run checks the rows before its position again, so that the rejects
 * and the figures are those of the whole file, and sends only the rows after it.
 *
 * @returns the line up to which everything is counted or rejected
 * @throws StalledError when nothing can be counted for too long
 */
export async function importAttempts(options: ImportOptions): Promise<number> {
  const { feeder, resumeAfter } = options;
  const check = rowChecker(options);
  let last = 0;
  const position = (): number => Math.max(resumeAfter, (feeder.firstOpenLine() ?? last + 1) - 1);
  for await (const page of options.pages) {
    if (options.stopped()) break;
    await feeder.push(check(page));
    last = page.at(-1)?.line ?? last;
    await options.reached(position());
  }
  await feeder.drain();
  return position();
}

/** Which rows of a page are to be sent. */
function rowChecker({ rules, resumeAfter, figures, reject }: ImportOptions) {
  const goesBackwards = createBackwardsCounter();
  return (page: readonly RawRow[]) => {
    const receivedAt = Date.now();
    figures.rows += page.length;
    return page.flatMap((row) => {
      const checked = checkRow(row, rules, receivedAt);
      if (typeof checked === 'string') {
        figures.rejected++;
        reject(row.line, checked);
        return [];
      }
      if (goesBackwards(checked.event.userId, checked.order)) figures.backwards++;
      if (row.line > resumeAfter) return [checked.event];
      figures.skipped++;
      return [];
    });
  };
}

/** Learners whose last order is remembered: a bound on memory. */
const maxLearners = 50_000;

/**
 * Says of each row whether its order is lower than that of the row before of the same learner. Only the learners
 * seen last are remembered, so that rows far apart may be taken for a first one.
 */
export function createBackwardsCounter(
  learners = maxLearners,
): (userId: string, order: number | null) => boolean {
  const last = new Map<string, number>();
  return (userId, order) => {
    if (order === null) return false;
    const before = last.get(userId);
    // A Map keeps the order of insertion: the first key is the learner not seen for longest.
    last.delete(userId);
    last.set(userId, order);
    if (last.size > learners) last.delete(last.keys().next().value as string);
    return before !== undefined && order < before;
  };
}
