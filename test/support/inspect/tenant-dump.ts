import type { RedisClient } from '../../../src/store/redis/connection/client.js';

/** Counters of a tenant's items: they are written a while after the answers that count. */
const isWrittenLater = (name: string): boolean => /^st:\{m:[^}]*\}:i:/.test(name);

/** What Redis has under names with the tenant in them, as it would be moved to another Redis; times to live aside. */
export async function tenantDump(redis: RedisClient, tenant: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const names = await redis.keys('*');
  for (const name of names
    .filter((one) => one.split(/[:{}]/).includes(tenant) && !isWrittenLater(one))
    .sort()) {
    const bytes = await redis.dumpBuffer(name);
    if (bytes !== null) found.set(name, bytes.toString('base64'));
  }
  return found;
}
