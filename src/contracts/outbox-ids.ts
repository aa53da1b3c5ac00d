/**
 * Ids in the outbox. A commit appends one entry for all rows of a batch in a partition; a row's id is that of its entry
 * with the row's place in it. In ClickHouse it is the pair (outbox_ms, outbox_seq), in text `ms-seq`, as Redis writes the
 * ids of entries: only the second half shows which of the two it is.
 */
import { inParts } from '../lists.js';

/** More than the rows of any entry. */
const placesOfEntry = 65_536;

/** Rows that are written as one entry at most: a fraction of a millisecond of whoever reads it. */
const maxEntryRows = 512;

/** Rows in their order as the texts of entries, in as few as may be: a line feed between two rows. */
export const entriesOf = (rows: readonly string[]): string[] =>
  inParts(rows, maxEntryRows).map((some) => some.join('\n'));

export interface OutboxId {
  /** Unix milliseconds on Redis' clock. */
  readonly ms: number;
  readonly seq: number;
}

/** The last row that a partition's outbox was ever given, and when that was asked. */
export interface LastRow {
  readonly partition: number;
  readonly ms: number;
  readonly seq: number;
  /** Redis' clock, Unix milliseconds: rows added later have this in their ids or more. */
  readonly askedAt: number;
}

/** @param text what an erasure or a stream says. @throws Error for what is no id */
export function parseId(text: string): OutboxId {
  const [ms = Number.NaN, seq = Number.NaN] = text.split('-').map(Number);
  if (!Number.isSafeInteger(ms) || !Number.isSafeInteger(seq)) throw new Error(`not an outbox id: ${text}`);
  return { ms, seq };
}

function rowIdOf(entryId: string, place: number): OutboxId {
  const { ms, seq } = parseId(entryId);
  return { ms, seq: seq * placesOfEntry + place };
}

/** Rows of entries before this one are below. */
export const firstRowOf = (entryId: string): OutboxId => rowIdOf(entryId, 0);

/** Rows of this entry and those before are not above. */
export const lastRowOf = (entryId: string): OutboxId => rowIdOf(entryId, placesOfEntry - 1);

export const entryIdOf = ({ ms, seq }: OutboxId): string => `${ms}-${Math.floor(seq / placesOfEntry)}`;

export const isBefore = (id: OutboxId, other: OutboxId): boolean =>
  id.ms < other.ms || (id.ms === other.ms && id.seq < other.seq);
