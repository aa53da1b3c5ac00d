/**
 * The event ids of one learner, in a hash of their own, so that what others read of a learner stays small. Its fields are
 * the numbers of buckets, which the first byte of an id's hash tells: an answer reads one and writes it again, an entry
 * where ids are few, about 16 where there are 1,000. An entry is 8 bytes of hash and the record of the first answer
 * (event-ids.ts), 32 in all; oldest first. One field more is the ledger (id-ledger.ts).
 *
 * Entries that are over are left out when their bucket is written; those that nobody writes again are looked for
 * (id-sweep.ts). Whoever writes here writes the learner's own record too, whose version guards both.
 *
 * Measured beside others, µs of Redis an answer that has 60 ids, without any 4.7: ids in a partition's buckets, as before,
 * 8.0, without what growing them costs; here 6.6; in fields of the learner's own hash 6.1, and whoever reads a learner
 * reads them; the newest in the learner's record, with a Bloom filter for others, 6.0.
 */
import { answerBytes, idBytes } from './event-ids.js';
import { openLedger } from './id-ledger.js';

const buckets = 64;
export const entryBytes = idBytes + answerBytes;

/** Field of the ledger. */
export const ledgerField = 'n';
/** Field in which an id stands. */
const bucketField = (id: Buffer): string => `${(id[0] as number) % buckets}`;

/** The fields that tell of ids; empty where there are none. */
export const idFieldsOf = (ids: readonly Buffer[]): readonly string[] =>
  ids.length === 0 ? [] : [ledgerField, ...new Set(ids.map(bucketField))];

/** What Redis has of the ids that were asked for. */
export interface StoredIds {
  readonly ledger: Buffer | null;
  /** By field. */
  readonly buckets: ReadonlyMap<string, Buffer>;
}

/** @param values of `idFieldsOf`, in its order */
export function storedIds(fields: readonly string[], values: readonly (Buffer | null)[]): StoredIds {
  const buckets = new Map<string, Buffer>();
  for (let i = 1; i < fields.length; i++) {
    const value = values[i];
    if (value) buckets.set(fields[i] as string, value);
  }
  return { ledger: values[0] ?? null, buckets };
}

/** Whether one of the ids is there, remembered or over. */
export const hasAny = ({ buckets }: StoredIds, ids: readonly Buffer[]): boolean =>
  ids.some((id) => placeIn(buckets.get(bucketField(id)) ?? none, id) >= 0);

/** Seconds are Unix time. */
export interface LearnerIds {
  /** Record of the first answer with the id; null where none is remembered. */
  find(id: Buffer, second: number): Buffer | null;
  /** Whether no more ids may be taken now. */
  isFull(second: number): boolean;
  /** Takes an id that was not found. @param answer its record */
  take(id: Buffer, answer: Buffer, second: number): void;
  /** Fields that changed, with their values. */
  changes(): IdFields;
}

export type IdFields = readonly (readonly [field: string, value: Buffer])[];

const none = Buffer.alloc(0);

/** Of a learner without any. */
export const noIds: StoredIds = { ledger: null, buckets: new Map() };

export function openIds(stored: StoredIds): LearnerIds {
  const ledger = openLedger(stored.ledger);
  const changed = new Map<string, Buffer>();
  const bucketOf = (field: string): Buffer => changed.get(field) ?? stored.buckets.get(field) ?? none;
  const isOver = (bucket: Buffer, at: number, second: number): boolean =>
    !ledger.remembers(bucket.readUInt32LE(at + idBytes), second);

  function withoutOver(bucket: Buffer, second: number): Buffer {
    let at = 0;
    while (at < bucket.length && isOver(bucket, at, second)) at += entryBytes;
    return bucket.subarray(at);
  }

  return {
    find: (id, second) => {
      const bucket = bucketOf(bucketField(id));
      const at = placeIn(bucket, id);
      if (at < 0 || isOver(bucket, at, second)) return null;
      return bucket.subarray(at + idBytes, at + entryBytes);
    },
    isFull: ledger.isFull,
    take: (id, answer, second) => {
      const field = bucketField(id);
      const at = ledger.take(second);
      const bucket = Buffer.concat([withoutOver(bucketOf(field), at), id, answer]);
      bucket.writeUInt32LE(at, bucket.length - answerBytes);
      changed.set(field, bucket);
    },
    changes: () => (changed.size === 0 ? [] : [[ledgerField, ledger.encoded()], ...changed]),
  };
}

/** Where the last entry of an id begins, for one that is over may stand before it; -1: nowhere. */
function placeIn(bucket: Buffer, id: Buffer): number {
  const [low, high] = [id.readInt32LE(0), id.readInt32LE(4)];
  for (let at = bucket.length - entryBytes; at >= 0; at -= entryBytes) {
    if (bucket.readInt32LE(at) === low && bucket.readInt32LE(at + 4) === high) return at;
  }
  return -1;
}
