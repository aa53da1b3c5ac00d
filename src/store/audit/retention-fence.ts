/** Keeps answers in flight out of archived months. A month is a number such as 202601. */
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeAttemptRow } from '../../contracts/answers/attempt-row.js';
import { toMonth } from '../../domain/base/common.js';
import { indices } from '../../lists.js';
import { findField, readStreamPages } from '../redis/commands/bulk-operations.js';
import type { RedisClient } from '../redis/connection/client.js';
import { archiveFenceKey, dueErasuresKey, outboxKey, parkedKey } from '../redis/keys.js';

const pollMs = 200;
/** The next run retries. */
const maxWaitMs = 60_000;
const rowsPerPage = 200;

export type RetentionFence = ReturnType<typeof createRetentionFence>;

export function createRetentionFence(redis: RedisClient, partitions: number, timeoutMs = maxWaitMs) {
  const allPartitions = indices(partitions);

  /** @param lastIds by partition */
  async function isDrained(lastIds: readonly string[]): Promise<boolean> {
    const heads = await Promise.all(
      allPartitions.flatMap((partition) =>
        [outboxKey(partition), dueErasuresKey(partition)].map((key) =>
          redis.xrange(key, '-', lastIds[partition] ?? '-', 'COUNT', 1),
        ),
      ),
    );
    return heads.every((head) => head.length === 0);
  }

  return {
    /**
     * From now on, retractions that would write rows of the month again are rejected.
     * @returns why answers of the month may still be in flight, or null
     */
    close: async (month: number): Promise<string | null> => {
      await Promise.all(allPartitions.map((partition) => raiseFence(redis, partition, month)));
      const lastIds = await Promise.all(allPartitions.map((partition) => fetchLastId(redis, partition)));
      for (const deadline = performance.now() + timeoutMs; !(await isDrained(lastIds)); await sleep(pollMs))
        if (performance.now() > deadline) return 'earlier rows are still in the outbox';
      for (const partition of allPartitions)
        if (await hasParkedRows(redis, partition, month))
          return 'parked rows are from this month or earlier (npm run parked)';
      return null;
    },
  };
}

export async function raiseFence(redis: RedisClient, partition: number, month: number): Promise<void> {
  await redis.zadd(archiveFenceKey(partition), 'GT', month, 'month');
}

async function fetchLastId(redis: RedisClient, partition: number): Promise<string> {
  const key = outboxKey(partition);
  if ((await redis.exists(key)) === 0) return '0-0';
  const facts = (await redis.xinfo('STREAM', key)) as unknown[];
  return String(facts[facts.indexOf('last-generated-id') + 1]);
}

/** An unreadable row may belong to the month. */
async function hasParkedRows(redis: RedisClient, partition: number, month: number): Promise<boolean> {
  const parked = parkedKey(outboxKey(partition));
  for await (const page of readStreamPages(redis, parked, { size: rowsPerPage })) {
    if (page.some(([, fields]) => parseArrivalMonth(fields) <= month)) return true;
  }
  return false;
}

function parseArrivalMonth(fields: readonly string[]): number {
  try {
    return toMonth(decodeAttemptRow(findField(fields, 'r') ?? '').event.receivedAt);
  } catch {
    return 0;
  }
}
