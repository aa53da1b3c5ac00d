/** Changes through the API. A rebuild of Redis starts an empty log. */
import type { ActivityEntry } from '../../contracts/access/activity.js';
import { executeAll, mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { activityKey } from '../redis/keys.js';

/** Per tenant, and of all tenants together: about 2 MB each. */
const maxEntries = 10_000;

export type ActivityStore = ReturnType<typeof createActivityStore>;

export const createActivityStore = (client: RedisClient) => ({
  append: (entry: ActivityEntry): Promise<unknown> => {
    const append = client.multi();
    for (const key of [activityKey(null), activityKey(entry.tenant)])
      append.xadd(key, 'MAXLEN', '~', maxEntries, '*', 'a', JSON.stringify(entry));
    return executeAll(append);
  },
  /** Newest first. @param tenant null: all tenants @param before id of the last entry of the previous page */
  list: async (tenant: string | null, before: string | null, limit: number) => {
    const from = before === null ? '+' : `(${before}`;
    const found = await mapRedisErrors(client.xrevrange(activityKey(tenant), from, '-', 'COUNT', limit));
    return found.map(([id, [, text = '']]) => ({ id, ...(JSON.parse(text) as ActivityEntry) }));
  },
});
