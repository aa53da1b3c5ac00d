/**
 * A commit appends one entry for all rows of a batch in a partition. A row's id is the entry's id plus the row's position, in
 * ClickHouse (outbox_ms, outbox_seq). The text `ms-seq` looks like an entry id of Redis: only its second part differs.
 */
import { inParts } from '../lists.js';

/** Above the number of rows of any entry. */
const placesOfEntry = 65_536;

/** Limit of rows in one entry: a fraction of a millisecond for each reader. */
const maxEntryRows = 512;

export const entriesOf = (rows: readonly string[]): string[] =>
  inParts(rows, maxEntryRows).map((some) => some.join('\n'));

export interface OutboxId {
  /** Unix milliseconds on Redis' clock. */
  readonly ms: number;
  readonly seq: number;
}

export interface LastRow {
  readonly partition: number;
  readonly ms: number;
  readonly seq: number;
  /** Unix milliseconds on Redis' clock: later rows have this time or more in their ids. */
  readonly askedAt: number;
}

/** @throws Error for an invalid id */
export function parseId(text: string): OutboxId {
  const [ms = Number.NaN, seq = Number.NaN] = text.split('-').map(Number);
  if (!Number.isSafeInteger(ms) || !Number.isSafeInteger(seq)) throw new Error(`not an outbox id: ${text}`);
  return { ms, seq };
}

function rowIdOf(entryId: string, place: number): OutboxId {
  const { ms, seq } = parseId(entryId);
  return { ms, seq: seq * placesOfEntry + place };
}

/** Rows of earlier entries are below. */
export const firstRowOf = (entryId: string): OutboxId => rowIdOf(entryId, 0);

/** Rows of this entry and earlier ones are not above. */
export const lastRowOf = (entryId: string): OutboxId => rowIdOf(entryId, placesOfEntry - 1);

export const entryIdOf = ({ ms, seq }: OutboxId): string => `${ms}-${Math.floor(seq / placesOfEntry)}`;

export const isBefore = (id: OutboxId, other: OutboxId): boolean =>
  id.ms < other.ms || (id.ms === other.ms && id.seq < other.seq);
