import { createHash } from 'node:crypto';
import type { IfMatch } from '../../contracts/schema/preconditions.js';
import { defaultMapping, type XapiMapping, xapiMappingCheck } from '../../contracts/xapi/mapping.js';
import { setRecentlyUsed } from '../redis/commands/recently-used.js';
import { compareAndSetField } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { withReplication } from '../redis/connection/replication.js';
import { xapiMappingsKey } from '../redis/keys.js';

/** A mapping takes up to 3 MB. */
const maxCachedMappings = 20;

type StoredMapping = ReturnType<typeof decode>;

function decode(text: string) {
  const tag = createHash('sha1').update(text).digest('hex');
  if (text === '') return { text, tag, updatedAt: 0, value: defaultMapping };
  const { v, updatedAt, mapping }: Record<string, unknown> = JSON.parse(text);
  if (v === 1 && typeof updatedAt === 'number' && xapiMappingCheck.Check(mapping))
    return { text, tag, updatedAt, value: mapping };
  throw new Error('unsupported format of the stored xAPI mapping');
}

export async function removeMapping(client: RedisClient, tenant: string): Promise<void> {
  await mapRedisErrors(client.hdel(xapiMappingsKey, tenant));
}

export type MappingStore = ReturnType<typeof createMappingStore>;

export function createMappingStore(client: RedisClient) {
  const cache = new Map<string, StoredMapping>();
  const read = async (tenant: string): Promise<StoredMapping> => {
    const text = (await mapRedisErrors(client.hget(xapiMappingsKey, tenant))) ?? '';
    const before = cache.get(tenant);
    const stored = before?.text === text ? before : decode(text);
    setRecentlyUsed(cache, tenant, stored, maxCachedMappings);
    return stored;
  };
  return {
    read,
    /** @returns null if `ifMatch` does not match */
    save: async (tenant: string, mapping: XapiMapping, ifMatch: IfMatch, now: number) => {
      for (;;) {
        const { text, tag, updatedAt } = await read(tenant);
        if (ifMatch !== null && ifMatch !== '*' && !ifMatch.includes(tag)) return null;
        const next = JSON.stringify({ v: 1, updatedAt: Math.max(now, updatedAt + 1), mapping });
        const replace = () => compareAndSetField(client, xapiMappingsKey, tenant, text, next);
        if ((await withReplication(client, xapiMappingsKey, replace)) === 1) return decode(next);
      }
    },
  };
}
