/**
 * A commit appends one stream entry for all rows of a batch in a partition. A row id combines the entry's id
 * and the row's position; in ClickHouse it is (outbox_ms, outbox_seq). Hazard: its text looks like an entry
 * id, but has another `seq`.
 */
import { splitIntoParts } from '../../lists.js';

/** More than `maxEntryRows`. */
const positionsPerEntry = 65_536;

/** Reading an entry takes a fraction of a millisecond. */
const maxEntryRows = 512;

export const splitIntoEntries = (rows: readonly string[]): string[] =>
  splitIntoParts(rows, maxEntryRows).map((some) => some.join('\n'));

export interface OutboxId {
  /** Unix milliseconds on Redis' clock. */
  readonly ms: number;
  readonly seq: number;
}

export interface LastRow {
  readonly partition: number;
  readonly ms: number;
  readonly seq: number;
  /** Unix milliseconds on Redis' clock. Ids of later rows are not smaller. */
  readonly readAt: number;
}

/** @throws Error for an invalid id */
export function parseOutboxId(text: string): OutboxId {
  const [ms = Number.NaN, seq = Number.NaN] = text.split('-').map(Number);
  if (!Number.isSafeInteger(ms) || !Number.isSafeInteger(seq)) throw new Error(`not an outbox id: ${text}`);
  return { ms, seq };
}

function toRowId(entryId: string, position: number): OutboxId {
  const { ms, seq } = parseOutboxId(entryId);
  return { ms, seq: seq * positionsPerEntry + position };
}

/** Greater than all row ids of earlier entries. */
export const toFirstRowId = (entryId: string): OutboxId => toRowId(entryId, 0);

/** Not smaller than any row id of this or an earlier entry. */
export const toLastRowId = (entryId: string): OutboxId => toRowId(entryId, positionsPerEntry - 1);

export const toEntryId = ({ ms, seq }: OutboxId): string => `${ms}-${Math.floor(seq / positionsPerEntry)}`;

export const isBefore = (id: OutboxId, other: OutboxId): boolean =>
  id.ms < other.ms || (id.ms === other.ms && id.seq < other.seq);
