/** Keeps answers in flight out of archived months. A month is a number such as 202601. */
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeAttemptRow } from '../../contracts/attempt-row.js';
import { toMonth } from '../../domain/base/common.js';
import { indices } from '../../lists.js';
import type { RedisClient } from '../redis/client.js';
import { archivedKey, dueKey, outboxKey, parkedKey } from '../redis/keys.js';
import { fieldOf, streamPages } from '../redis/reads.js';

const pollMs = 200;
/** The next run retries. */
const maxWaitMs = 60_000;
const pageRows = 200;

export type RetentionFence = ReturnType<typeof createRetentionFence>;

export function createRetentionFence(redis: RedisClient, partitions: number, limitMs = maxWaitMs) {
  const all = indices(partitions);

  /** @param lastIds by partition */
  async function passed(ends: readonly string[]): Promise<boolean> {
    const heads = await Promise.all(
      all.flatMap((partition) =>
        [outboxKey(partition), dueKey(partition)].map((key) =>
          redis.xrange(key, '-', ends[partition] ?? '-', 'COUNT', 1),
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
      await Promise.all(all.map((partition) => raiseFence(redis, partition, month)));
      const ends = await Promise.all(all.map((partition) => endOf(redis, partition)));
      for (const until = performance.now() + limitMs; !(await passed(ends)); await sleep(pollMs))
        if (performance.now() > until) return 'rows of before are still in the outbox';
      for (const partition of all)
        if (await hasParked(redis, partition, month)) return 'parked rows arrived in this month or before';
      return null;
    },
  };
}

export async function raiseFence(redis: RedisClient, partition: number, month: number): Promise<void> {
  await redis.zadd(archivedKey(partition), 'GT', month, 'month');
}

async function endOf(redis: RedisClient, partition: number): Promise<string> {
  const key = outboxKey(partition);
  if ((await redis.exists(key)) === 0) return '0-0';
  const facts = (await redis.xinfo('STREAM', key)) as unknown[];
  return String(facts[facts.indexOf('last-generated-id') + 1]);
}

/** An unreadable row may belong to the month. */
async function hasParked(redis: RedisClient, partition: number, month: number): Promise<boolean> {
  const parked = parkedKey(outboxKey(partition));
  for await (const page of streamPages(redis, parked, { size: pageRows })) {
    if (page.some(([, fields]) => arrivalMonth(fields) <= month)) return true;
  }
  return false;
}

function arrivalMonth(fields: readonly string[]): number {
  try {
    return toMonth(decodeAttemptRow(fieldOf(fields, 'r') ?? '').event.receivedAt);
  } catch {
    return 0;
  }
}
