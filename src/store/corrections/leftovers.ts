/** What of erased learners is in Redis beside their states and the outbox: journal entries, marks of imports. */
import type { CorrectedRows } from '../../contracts/corrections.js';
import { journalRowOf, lastOfEnded } from '../../contracts/journal.js';
import { learnerName } from '../../contracts/learner-name.js';
import { byPartition } from '../../lists.js';
import { listImportMarks } from '../learners/import-store.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { forecastsKey, journalKey, learnerKey, parkedKey } from '../redis/keys.js';
import { fieldOf, streamPages } from '../redis/reads.js';

/**
 * Removes goals, forecasts and retractions of the ended histories that wait for ClickHouse, parked ones too.
 * @throws ApiError UNAVAILABLE
 */
export async function removeWaiting(
  client: RedisClient,
  partitions: number,
  rows: readonly CorrectedRows[],
): Promise<void> {
  const byName = new Map(rows.map((one) => [learnerName(one.tenant, one.userId), one]));
  const isOver = (fields: readonly string[]): boolean => {
    const kind = fieldOf(fields, 'k') ?? '';
    const row = journalRowOf(kind, fieldOf(fields, 'r') ?? '');
    const one = row === null ? undefined : byName.get(learnerName(row.tenant, row.userId));
    return one !== undefined && row !== null && row.at <= lastOfEnded(kind, one);
  };
  // Forecasts of a class may be in the stream of any of its learners.
  const forecasts = Array.from({ length: partitions }, (_, partition) => forecastsKey(partition));
  const streams = [...[...byPartition(rows).keys()].map(journalKey), ...forecasts];
  for (const stream of [...streams, ...streams.map(parkedKey)]) {
    for await (const page of streamPages(client, stream)) {
      const ids = page.filter(([, fields]) => isOver(fields)).map(([id]) => id);
      if (ids.length > 0) await whileRedisServes(client.xdel(stream, ...ids));
    }
  }
}

/**
 * Removes the learners' marks of imports.
 * @returns those of whom some have to stay, because their imports run
 * @throws ApiError UNAVAILABLE
 */
export async function removeMarks(
  client: RedisClient,
  rows: readonly CorrectedRows[],
): Promise<Set<CorrectedRows>> {
  const held = new Set<CorrectedRows>();
  for (const [partition, own] of byPartition(rows)) {
    const marks = await listImportMarks(client, partition);
    for (const one of own) {
      const field = learnerKey(partition, one.tenant, one.userId);
      for (const { key, running } of marks) {
        if (!running) await whileRedisServes(client.hdel(key, field));
        else if ((await whileRedisServes(client.hexists(key, field))) === 1) held.add(one);
      }
    }
  }
  return held;
}
