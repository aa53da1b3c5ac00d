import type { RedisClient } from './client.js';
import { forgottenIdsKey, partitionPrefix } from './keys.js';

/** Event ids are remembered this long, in seconds, unless there are too many of them. */
export const idWindowSeconds = 24 * 60 * 60;

/** How many ids one script call forgets at most, so that nobody waits long behind it. */
const chunk = 2000;

/**
 * Forgets event ids that are older than the window, then the oldest over all partitions while there are more than
 * `maxIds`. Any number of processes may do so at once.
 *
 * @returns the window in force then (`readIdWindow`)
 */
export async function forgetOldIds(
  client: RedisClient,
  partitions: number,
  maxIds: number,
  nowMs: number,
): Promise<number> {
  const prefixes = Array.from({ length: partitions }, (_, partition) => partitionPrefix(partition));
  const expired = Math.floor(nowMs / 1000) - idWindowSeconds;
  const left = await Promise.all(prefixes.map((prefix) => forgetUntil(client, prefix, expired)));
  await forgetSurplus(client, left, maxIds);
  return readIdWindow(client, nowMs);
}

/** The window in force, in seconds: how far back no id was forgotten. */
export async function readIdWindow(client: RedisClient, nowMs: number): Promise<number> {
  const youngestForgotten = Number((await client.zscore(forgottenIdsKey, 'second')) ?? 0);
  return Math.min(idWindowSeconds, Math.floor(nowMs / 1000) - youngestForgotten);
}

interface PartitionIds {
  readonly prefix: string;
  count: number;
  /** Unix second in which the oldest one came. */
  oldest: number;
}

async function forgetUntil(client: RedisClient, prefix: string, cutoff: number): Promise<PartitionIds> {
  for (;;) {
    const [forgotten, count, oldest] = await client.evictIds(prefix, cutoff, chunk);
    if (forgotten < chunk) return { prefix, count, oldest };
  }
}

/** Goes second by second from the oldest, wherever it is, until few enough are left. */
async function forgetSurplus(client: RedisClient, ids: PartitionIds[], maxIds: number): Promise<void> {
  let surplus = ids.reduce((sum, { count }) => sum + count, 0) - maxIds;
  while (surplus > 0) {
    const oldest = ids.reduce((a, b) => (b.count > 0 && (a.count === 0 || b.oldest < a.oldest) ? b : a));
    // Noted first: ids may be promised for too short a time for a moment, never for too long.
    await noteForgotten(client, oldest.oldest);
    const [forgotten, count, next] = await client.evictIds(
      oldest.prefix,
      oldest.oldest,
      Math.min(chunk, surplus),
    );
    if (forgotten === 0 && count === oldest.count) return;
    Object.assign(oldest, { count, oldest: next });
    surplus -= forgotten;
  }
}

/** Several processes note at once, and the youngest second must win: hence a score that only grows. */
export async function noteForgotten(client: RedisClient, second: number): Promise<void> {
  await client.zadd(forgottenIdsKey, 'GT', second, 'second');
}
