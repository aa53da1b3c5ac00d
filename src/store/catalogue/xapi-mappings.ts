import { createHash } from 'node:crypto';
import type { IfMatch } from '../../contracts/preconditions.js';
import { defaultMapping, type XapiMapping, xapiMappingCheck } from '../../contracts/xapi/mapping.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { xapiMappingsKey } from '../redis/keys.js';
import { keepRecent } from '../redis/recent.js';
import { replicated } from '../redis/replication.js';
import { replaceField } from '../redis/script.js';

/** A mapping takes up to 3 MB. */
const mostKept = 20;

type StoredMapping = ReturnType<typeof decode>;

function decode(text: string) {
  const tag = createHash('sha1').update(text).digest('hex');
  if (text === '') return { text, tag, updatedAt: 0, value: defaultMapping };
  const { v, updatedAt, mapping }: Record<string, unknown> = JSON.parse(text);
  if (v === 1 && typeof updatedAt === 'number' && xapiMappingCheck.Check(mapping))
    return { text, tag, updatedAt, value: mapping };
  throw new Error('the stored xAPI mapping is not known to this version');
}

export async function removeMapping(client: RedisClient, tenant: string): Promise<void> {
  await whileRedisServes(client.hdel(xapiMappingsKey, tenant));
}

export type MappingStore = ReturnType<typeof createMappingStore>;

export function createMappingStore(client: RedisClient) {
  const kept = new Map<string, StoredMapping>();
  const read = async (tenant: string): Promise<StoredMapping> => {
    const text = (await whileRedisServes(client.hget(xapiMappingsKey, tenant))) ?? '';
    const before = kept.get(tenant);
    const stored = before?.text === text ? before : decode(text);
    keepRecent(kept, tenant, stored, mostKept);
    return stored;
  };
  return {
    read,
    /** @returns null if `ifMatch` does not match */
    put: async (tenant: string, mapping: XapiMapping, ifMatch: IfMatch, now: number) => {
      for (;;) {
        const { text, tag, updatedAt } = await read(tenant);
        if (ifMatch !== null && ifMatch !== '*' && !ifMatch.includes(tag)) return null;
        const next = JSON.stringify({ v: 1, updatedAt: Math.max(now, updatedAt + 1), mapping });
        const replace = () => replaceField(client, xapiMappingsKey, tenant, text, next);
        if ((await replicated(client, xapiMappingsKey, replace)) === 1) return decode(next);
      }
    },
  };
}
