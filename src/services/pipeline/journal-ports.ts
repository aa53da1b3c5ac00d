/** What draining the journal needs from Redis and ClickHouse, and what they guarantee. */
import type { JournalKind } from '../../contracts/journal.js';

/** One fact on its way. */
export interface JournalEntry {
  /** Where it waits: the stream's key. */
  readonly source: string;
  readonly id: string;
  /** One of `journalKinds`, unless another version of the service wrote it. */
  readonly kind: string;
  /** TSV without a line feed (contracts/journal.ts). */
  readonly row: Buffer;
}

export interface JournalPage {
  readonly entries: readonly JournalEntry[];
  /** Whether more waited when it was read. */
  readonly more: boolean;
}

export interface JournalFacts {
  readonly journalLength: number;
  /** Rows put aside because ClickHouse refused their content. */
  readonly parked: number;
  /** Streams whose parked rows are at their bound: the next one that is refused waits. */
  readonly fullyParked: number;
}

/** The facts that are in Redis and not yet known to be in ClickHouse. */
export interface Journal {
  /**
   * The oldest entries of every source, each source's in their order; removes nothing.
   * @param maxBytes soft: reading stops after the source that reaches it
   */
  next(maxBytes: number): Promise<JournalPage>;
  /** Removes these entries and no others. Doing it again does nothing. */
  remove(entries: readonly JournalEntry[]): Promise<void>;
  /**
   * Moves an entry to where refused ones are kept, in one step.
   * @returns the key of the stream that has it now; null where there is no room, and it stays
   */
  park(entry: JournalEntry, reason: string): Promise<string | null>;
  facts(): Promise<JournalFacts>;
}

/** The tables of the journal. A row that is inserted again shows once: each has a natural key. */
export interface JournalWarehouse {
  /**
   * Inserts rows of one kind. Resolves when they are on the disk, with null, or with the name of the error where
   * ClickHouse refuses the content of at least one of them: then none is stored. Rejects for everything else.
   */
  insert(kind: JournalKind, rows: readonly Buffer[]): Promise<string | null>;
}
