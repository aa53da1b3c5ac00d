/** What ClickHouse refuses of the outbox leaves it out of turn. */
import { createHash } from 'node:crypto';
import { inParts } from '../../lists.js';
import type { RedisClient } from '../redis/client.js';
import { outboxKey, parkedBound, parkedKey } from '../redis/keys.js';
import { moveRowsToParked, moveToParked } from './parked-scripts.js';

/** Entries of one partition's outbox, by their ids. */
export interface OutboxEntries {
  partition: number;
  ids: string[];
}

/** An entry of the outbox with its rows, without their outbox columns. */
export interface StoredEntry {
  partition: number;
  id: string;
  rows: readonly Buffer[];
}

/** A row that ClickHouse refuses. */
export interface RefusedRow {
  /** As text (contracts/outbox-ids.ts). */
  id: string;
  /** Without its outbox columns. */
  row: Buffer;
  reason: string;
}

/** Of one command: a fraction of a millisecond of Redis, which answers learners meanwhile. */
const pageIds = 200;

/** @returns how many had to stay where they are, for want of room */
export async function parkEntries(
  redis: RedisClient,
  { partition, ids }: OutboxEntries,
  reason: string,
): Promise<number> {
  const stream = outboxKey(partition);
  let stayed = 0;
  for (const page of inParts(ids, pageIds)) {
    stayed += await moveToParked(redis, stream, parkedKey(stream), parkedBound, reason, ...page);
  }
  return stayed;
}

/** @returns whether there was room; false leaves the entry as it is */
export async function parkRows(
  redis: RedisClient,
  { partition, id: entryId, rows }: StoredEntry,
  refused: readonly RefusedRow[],
): Promise<boolean> {
  const stream = outboxKey(partition);
  const sha1 = createHash('sha1');
  rows.forEach((row, place) => {
    sha1.update(place === 0 ? '' : '\n').update(row);
  });
  const each = refused.flatMap(({ id, reason, row }) => [id, reason, row]);
  const parked = parkedKey(stream);
  const done = await moveRowsToParked(
    redis,
    stream,
    parked,
    parkedBound,
    entryId,
    sha1.digest('hex'),
    rows.length,
    ...each,
  );
  return done === 1;
}
