/**
 * Moves journal rows to ClickHouse at least once. Natural keys hide duplicates. Hazard: with deduplication
 * tokens, a killed ClickHouse may drop repeats of rows that it lacks.
 */
import { type JournalKind, journalKinds } from '../../contracts/journal/journal.js';
import { groupBy } from '../../lists.js';
import type { Logger } from '../../logger.js';
import type { Journal, JournalEntry } from '../../store/outbox/journal.js';
import type { JournalWarehouse } from '../../warehouse/ingest/journal-warehouse.js';
import { createParkedLog } from './isolate-rows.js';

const maxPageBytes = 16 * 2 ** 20;

interface JournalDrainOptions {
  readonly journal: Journal;
  readonly warehouse: JournalWarehouse;
  /** @returns entries to remove without storing them */
  readonly findLateEntries?: (entries: readonly JournalEntry[]) => Promise<readonly JournalEntry[]>;
  readonly logger: Logger;
}

/** An abort takes effect after the current page. @returns number of moved rows */
export function createJournalDrain({ journal, warehouse, findLateEntries, logger }: JournalDrainOptions) {
  const logParked = createParkedLog(logger, () => performance.now());

  return async (signal?: AbortSignal): Promise<number> => {
    let moved = 0;
    for (;;) {
      const { entries, hasMore } = await journal.peek(maxPageBytes);
      const lateEntries = new Set(await findLateEntries?.(entries));
      await journal.remove([...lateEntries]);
      await storeEntries(entries.filter((entry) => !lateEntries.has(entry)));
      moved += entries.length;
      if (!hasMore || signal?.aborted === true) return moved;
    }
  };

  /** An error in one kind does not block the others. */
  async function storeEntries(entries: readonly JournalEntry[]): Promise<void> {
    const kinds = groupBy(entries, ({ kind }) => kind);
    const outcomes = await Promise.allSettled(
      [...kinds].map(([kind, own]) =>
        isJournalKind(kind)
          ? storeKind(kind, own)
          : parkAll(own.map((entry) => ({ entry, reason: 'unknown kind' }))),
      ),
    );
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  async function storeKind(kind: JournalKind, entries: readonly JournalEntry[]): Promise<void> {
    const rejected = await insert(kind, entries);
    const rejectedEntries = new Set(rejected.map(({ entry }) => entry));
    await journal.remove(entries.filter((entry) => !rejectedEntries.has(entry)));
    await parkAll(rejected);
  }

  /** One bad row rejects its block: halve it until the row is alone. */
  async function insert(kind: JournalKind, entries: readonly JournalEntry[]): Promise<RejectedEntry[]> {
    const rows = entries.map(({ row }) => row);
    const reason = await warehouse.insert(kind, rows);
    if (reason === null) return [];
    const [entry, ...others] = entries;
    if (entry !== undefined && others.length === 0) return [{ entry, reason }];
    const middle = entries.length >> 1;
    const first = await insert(kind, entries.slice(0, middle));
    return [...first, ...(await insert(kind, entries.slice(middle)))];
  }

  async function parkAll(rejected: readonly RejectedEntry[]): Promise<void> {
    for (const { entry, reason } of rejected) {
      const { kind, source, id } = entry;
      const parked = await journal.park(entry, reason);
      if (parked === null)
        throw new Error(
          `the limit of parked rows of ${source} is reached; rejected rows wait in the journal`,
        );
      logParked({ kind, source, id, parked, reason }, 1);
    }
  }
}

interface RejectedEntry {
  readonly entry: JournalEntry;
  readonly reason: string;
}

const isJournalKind = (kind: string): kind is JournalKind => journalKinds.some((known) => known === kind);
