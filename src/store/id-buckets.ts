/**
 * Where a partition's event ids stand (id-scripts.ts tells how they are kept, and why): the same arithmetic as in the
 * scripts, for reading and writing ids without one.
 */
import type { Redis } from 'ioredis';
import { whileRedisServes } from './client.js';
import { idsPerBucket } from './id-scripts.js';
import { idCountKey, partitionPrefix } from './keys.js';

/** Number of the bucket that holds an id. @param buckets how many the partition has, from 1 */
export function bucketOf(id: Buffer, buckets: number): number {
  const hash = id.readUInt32LE(0);
  const span = 2 ** (31 - Math.clz32(buckets));
  const bucket = hash % (2 * span);
  return bucket < buckets ? bucket : hash % span;
}

/** Numbers of buckets as one connection last saw them; Redis has the true ones. */
export interface BucketCounts {
  /** Asks for those that were never seen. @throws ApiError UNAVAILABLE */
  know(partitions: readonly number[]): Promise<void>;
  of(partition: number): number;
  /** What Redis says. @param stored value of the count's key */
  note(partition: number, stored: Buffer | null): void;
  /** So many ids are remembered in the partition now. */
  noteIds(partition: number, ids: number): void;
  /**
   * Orders more buckets where they are due; commands that are sent after it find them. They are made several at a
   * time, for whoever has read the old number has to try again.
   */
  grow(partitions: readonly number[]): void;
}

/** Fewer are ordered at once where there are few, so that none outgrows its compact form. */
const mostAtOnce = 16;
const atOnce = (buckets: number): number => Math.max(1, Math.min(mostAtOnce, buckets >> 3));

export function createBucketCounts(client: Redis): BucketCounts {
  const counts = new Map<number, number>();
  const ids = new Map<number, number>();
  const of = (partition: number): number => counts.get(partition) ?? 1;
  const note = (partition: number, stored: Buffer | string | null): void => {
    counts.set(partition, Number(stored ?? 1));
  };

  function growOne(partition: number): void {
    const [buckets, remembered] = [of(partition), ids.get(partition) ?? 0];
    if (remembered <= idsPerBucket * (buckets + atOnce(buckets))) return;
    const target = Math.ceil(remembered / idsPerBucket);
    counts.set(partition, target);
    // Who reads next sees what became of it.
    client.growIds(partitionPrefix(partition), target).catch(() => undefined);
  }

  return {
    know: async (partitions) => {
      const unknown = partitions.filter((partition) => !counts.has(partition));
      if (unknown.length === 0) return;
      const stored = await whileRedisServes(client.mget(unknown.map(idCountKey)));
      unknown.forEach((partition, i) => {
        note(partition, stored[i] as string | null);
      });
    },
    of,
    note,
    noteIds: (partition, remembered) => {
      ids.set(partition, remembered);
    },
    grow: (partitions) => {
      for (const partition of partitions) growOne(partition);
    },
  };
}
