/** Entries of the outbox that leave it out of turn: those that ClickHouse has already, and those that it refuses. */
import type { OutboxEntries } from '../services/pipeline-ports.js';
import type { RedisClient } from './client.js';
import { outboxKey, parkedBound, parkedKey } from './keys.js';

/** Of one command: a fraction of a millisecond of Redis, which answers learners meanwhile. */
const pageIds = 200;

const pagesOf = (ids: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(ids.length / pageIds) }, (_, i) =>
    ids.slice(i * pageIds, (i + 1) * pageIds),
  );

/** @param rows each as `partition\tms\tseq` */
export async function removeRows(redis: RedisClient, rows: ReadonlySet<string>): Promise<void> {
  const byPartition = new Map<number, string[]>();
  for (const row of rows) {
    const [partition, ms, seq] = row.split('\t');
    const ids = byPartition.get(Number(partition)) ?? [];
    byPartition.set(Number(partition), ids);
    ids.push(`${ms}-${seq}`);
  }
  for (const [partition, ids] of byPartition) {
    for (const page of pagesOf(ids)) await redis.xdel(outboxKey(partition), ...page);
  }
}

/** @returns how many had to stay where they are, for want of room */
export async function parkEntries(
  redis: RedisClient,
  { partition, ids }: OutboxEntries,
  reason: string,
): Promise<number> {
  const stream = outboxKey(partition);
  let stayed = 0;
  for (const page of pagesOf(ids)) {
    stayed += await redis.parkEntries(stream, parkedKey(stream), parkedBound, reason, ...page);
  }
  return stayed;
}
