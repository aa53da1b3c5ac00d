import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { allScopes, type Grant, type StoredKey } from '../../contracts/access/access.js';
import { nullable, optionalNullable } from '../../contracts/schema/validate.js';
import { unavailable } from '../../errors.js';
import { splitIntoParts } from '../../lists.js';
import { readHash, type UnreadableHandler } from '../redis/commands/bulk-operations.js';
import { compareAndSetField, defineScript } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { apiKeysKey, lastUsesKey, metaKey, quotaKey } from '../redis/keys.js';

/** Stored under the key's hash. The key itself is never stored. */
const keyRecordCheck = Compile(
  Type.Object({
    tenant: Type.String(),
    requestsPerMinute: nullable(Type.Integer({ minimum: 1 })),
    scopes: Type.Array(Type.Enum([...allScopes])),
    development: Type.Boolean(),
    createdAt: Type.String(),
    revokedAt: nullable(Type.String()),
    name: optionalNullable(Type.String()),
    note: optionalNullable(Type.String()),
  }),
);

/** Fixed field order: a rebuild restores the same bytes. */
const encode = (key: StoredKey): string => {
  const { tenant, requestsPerMinute, scopes, development, createdAt, revokedAt } = key;
  const { name = null, note = null } = key;
  return JSON.stringify({ tenant, requestsPerMinute, scopes, development, createdAt, revokedAt, name, note });
};

function decode(keyHash: string, stored: string): StoredKey {
  const record: unknown = JSON.parse(stored);
  if (!keyRecordCheck.Check(record)) throw new Error(`the stored API key ${keyHash} is unreadable`);
  const { name = null, note = null } = record;
  const scopes = allScopes.filter((scope) => record.scopes.includes(scope));
  return { ...record, name, note, keyHash, scopes };
}

/** The window starts with the first request. `leftMs`: time until it ends. */
const chargeQuotaScript = defineScript(1)<
  [key: string, amount: number, windowMs: number],
  [taken: number, leftMs: number]
>(`
local taken = redis.call('INCRBY', KEYS[1], ARGV[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  left = tonumber(ARGV[2])
end
return { taken, left }
`);

export type KeyUpdate = Partial<Pick<StoredKey, 'requestsPerMinute' | 'name' | 'note'>>;
export type KeyStore = ReturnType<typeof createKeyStore>;

const now = (): string => new Date().toISOString();

export function createKeyStore(client: RedisClient, onUnreadable?: UnreadableHandler) {
  /** Retries after concurrent changes. @returns the previous value */
  const update = async (keyHash: string, decide: (stored: StoredKey | null) => StoredKey | null) => {
    for (;;) {
      const text = await mapRedisErrors(client.hget(apiKeysKey, keyHash));
      const stored = text === null ? null : decode(keyHash, text);
      const next = decide(stored);
      if (next === null) return stored;
      if ((await compareAndSetField(client, apiKeysKey, keyHash, text ?? '', encode(next))) === 1)
        return stored;
    }
  };
  const get = (keyHash: string): Promise<StoredKey | null> => update(keyHash, () => null);
  /** Includes revoked keys. */
  const listAll = async (): Promise<StoredKey[]> => {
    const keys = await readHash(client, apiKeysKey, decode, onUnreadable);
    return [...keys.values()].sort(
      (a, b) => Number(a.createdAt > b.createdAt) - Number(a.createdAt < b.createdAt),
    );
  };
  return {
    findActive: async (keyHash: string): Promise<StoredKey | null> => {
      const stored = await get(keyHash);
      return stored?.revokedAt === null ? stored : null;
    },
    get,
    all: listAll,
    listActive: async () => (await listAll()).filter(({ revokedAt }) => revokedAt === null),
    /** For a stored key, changes only the quota and given labels (and scopes of the development key). */
    save: async (grant: Grant): Promise<'added' | 'updated' | 'revoked'> => {
      const { requestsPerMinute, scopes, development, name, note } = grant;
      const labels = { ...(name !== undefined && { name }), ...(note !== undefined && { note }) };
      const stored = await update(grant.keyHash, (found) => {
        if (found === null) return { ...grant, createdAt: now(), revokedAt: null };
        if (found.revokedAt !== null) return null;
        return { ...found, requestsPerMinute, ...labels, ...(development && { scopes, development }) };
      });
      if (stored === null) return 'added';
      return stored.revokedAt === null ? 'updated' : 'revoked';
    },
    /** Does not change a revoked key. */
    change: async (keyHash: string, change: KeyUpdate): Promise<StoredKey | null> => {
      await update(keyHash, (found) => (found?.revokedAt === null ? { ...found, ...change } : null));
      return get(keyHash);
    },
    /** Unix milliseconds by key hash, for keys that were used. Lost in a rebuild. */
    readLastUses: async (): Promise<ReadonlyMap<string, number>> =>
      readHash(client, lastUsesKey, (_, text) => Number(text)),
    recordUses: async (keyHashes: readonly string[], at: number): Promise<void> => {
      for (const some of splitIntoParts(keyHashes, 500))
        await mapRedisErrors(client.hset(lastUsesKey, Object.fromEntries(some.map((one) => [one, at]))));
    },
    /** Does not replace a stored key, but always applies a revocation. */
    restore: (key: StoredKey) =>
      update(key.keyHash, (found) =>
        found === null || (key.revokedAt !== null && found.revokedAt === null) ? key : null,
      ),
    revoke: async (keyHash: string): Promise<boolean> => {
      const stored = await update(keyHash, (found) =>
        found?.revokedAt === null ? { ...found, revokedAt: now() } : null,
      );
      return stored?.revokedAt === null;
    },
  };
}

/** @throws ApiError UNAVAILABLE also if Redis is empty, because the key may be lost */
export const createKeyLookup = (client: RedisClient) => ({
  find: async (keyHash: string): Promise<Grant | null> => {
    const grant = await createKeyStore(client).findActive(keyHash);
    if (grant !== null || (await mapRedisErrors(client.exists(metaKey))) === 1) return grant;
    throw unavailable('The API key cannot be looked up now; retry with the same event_id.');
  },
});

const windowMs = 60_000;

export const createQuotaCounter = (client: RedisClient) => ({
  take: async (keyHash: string, amount: number) => {
    const [taken, endsInMs] = await chargeQuotaScript(client, quotaKey(keyHash), amount, windowMs);
    return { taken, endsInMs };
  },
});
