import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { unavailable } from '../errors.js';
import { allScopes, type Grant, type KeyRing, type QuotaCounter, type Scope } from '../services/ports.js';
import { type RedisClient, whileRedisServes } from './client.js';
import { apiKeysKey, metaKey, quotaKey } from './keys.js';

/** A key as it is stored: never the key itself, only its hash as the field's name. */
const StoredKey = Type.Object({
  tenant: Type.String(),
  requests_per_minute: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]),
  scopes: Type.Array(Type.Enum(['read', 'write', 'admin'])),
  created_at: Type.String(),
});
const storedKeyCheck = Compile(StoredKey);

export interface KeyStore extends KeyRing {
  /** Adds a key, or gives the one in store a new quota; tenant and scopes of a stored key stay. */
  put(grant: Grant): Promise<'added' | 'updated'>;
  list(): Promise<(Grant & { readonly createdAt: string })[]>;
  /** False if there is no such key. */
  revoke(keyHash: string): Promise<boolean>;
}

export function createKeyStore(client: RedisClient): KeyStore {
  return {
    find: async (keyHash) => {
      const stored = await whileRedisServes(client.hget(apiKeysKey, keyHash));
      return stored === null ? null : grantOf(keyHash, stored);
    },
    put: async (grant) => {
      const added = await client.hsetnx(apiKeysKey, grant.keyHash, encode(grant));
      if (added === 1) return 'added';
      const stored = grantOf(grant.keyHash, (await client.hget(apiKeysKey, grant.keyHash)) ?? encode(grant));
      const updated = { ...stored, requestsPerMinute: grant.requestsPerMinute };
      await client.hset(apiKeysKey, grant.keyHash, encode(updated, stored.createdAt));
      return 'updated';
    },
    list: async () => {
      const all = await client.hgetall(apiKeysKey);
      const grants = Object.entries(all).map(([keyHash, stored]) => grantOf(keyHash, stored));
      return grants.sort((a, b) => a.createdAt.localeCompare(b.createdAt));
    },
    revoke: async (keyHash) => (await client.hdel(apiKeysKey, keyHash)) === 1,
  };
}

/** The keys as the front end asks for them: a Redis that came back empty cannot say which keys there are. */
export function createKeyRing(client: RedisClient): KeyRing {
  const { find } = createKeyStore(client);
  return {
    find: async (keyHash) => {
      const grant = await find(keyHash);
      if (grant !== null || (await whileRedisServes(client.exists(metaKey))) === 1) return grant;
      throw unavailable('The API key cannot be looked up right now; try again with the same event_id');
    },
  };
}

const encode = (grant: Grant, createdAt = new Date().toISOString()): string =>
  JSON.stringify({
    tenant: grant.tenant,
    requests_per_minute: grant.requestsPerMinute,
    scopes: grant.scopes,
    created_at: createdAt,
  });

function grantOf(keyHash: string, stored: string): Grant & { readonly createdAt: string } {
  const value: unknown = JSON.parse(stored);
  if (!storedKeyCheck.Check(value)) throw new Error(`the stored API key ${keyHash} is not readable`);
  const scopes: readonly Scope[] = allScopes.filter((scope) => value.scopes.includes(scope));
  const { tenant, requests_per_minute: requestsPerMinute, created_at: createdAt } = value;
  return { keyHash, tenant, requestsPerMinute, scopes, createdAt };
}

const windowMs = 60_000;

export const createQuotaCounter = (client: RedisClient): QuotaCounter => ({
  take: async (keyHash, amount) => {
    const [taken, endsInMs] = await whileRedisServes(client.takeQuota(quotaKey(keyHash), amount, windowMs));
    return { taken, endsInMs };
  },
});
