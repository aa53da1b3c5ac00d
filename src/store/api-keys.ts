import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { unavailable } from '../errors.js';
import type { KeptKey } from '../services/deployment-facts.js';
import { allScopes, type Grant, type KeyRing, type QuotaCounter, type Scope } from '../services/ports.js';
import { type RedisClient, whileRedisServes } from './client.js';
import { decodeEach, refuseUnreadable, type TellUnreadable } from './decode-each.js';
import { apiKeysKey, metaKey, quotaKey } from './keys.js';

/** A key as it is stored: never the key itself, only its hash as the field's name. */
const StoredKey = Type.Object({
  tenant: Type.String(),
  requests_per_minute: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]),
  scopes: Type.Array(Type.Enum(['read', 'write', 'admin'])),
  created_at: Type.String(),
  /** Kept after its end, so that ClickHouse can be told of it. */
  revoked_at: Type.Optional(Type.String()),
});
const storedKeyCheck = Compile(StoredKey);

export interface KeyStore extends KeyRing {
  /** Adds a key, or gives the one in store a new quota; tenant and scopes of a stored key stay. */
  put(grant: Grant): Promise<'added' | 'updated'>;
  list(): Promise<KeptKey[]>;
  /** Those that were revoked as well. */
  all(): Promise<KeptKey[]>;
  /** Puts a key as it was kept, unless it is there. */
  restore(key: KeptKey): Promise<void>;
  /** False if there is no such key. */
  revoke(keyHash: string): Promise<boolean>;
}

/** @param tell of keys that cannot be read, when all are asked for: the others are given all the same */
export function createKeyStore(client: RedisClient, tell: TellUnreadable = refuseUnreadable): KeyStore {
  const read = async (keyHash: string): Promise<KeptKey | null> => {
    const stored = await whileRedisServes(client.hget(apiKeysKey, keyHash));
    const key = stored === null ? null : keptKey(keyHash, stored);
    return key?.revokedAt === null ? key : null;
  };
  const write = (key: KeptKey) => whileRedisServes(client.hset(apiKeysKey, key.keyHash, encode(key)));
  const all = async (): Promise<KeptKey[]> => {
    const keys = decodeEach(await whileRedisServes(client.hgetall(apiKeysKey)), keptKey, tell);
    return keys.sort((a, b) => a.createdAt.localeCompare(b.createdAt));
  };
  return {
    find: read,
    put: async (grant) => {
      const created = { ...grant, createdAt: now(), revokedAt: null };
      const added = await client.hsetnx(apiKeysKey, grant.keyHash, encode(created));
      if (added === 1) return 'added';
      const stored = await read(grant.keyHash);
      await write(stored === null ? created : { ...stored, requestsPerMinute: grant.requestsPerMinute });
      return stored === null ? 'added' : 'updated';
    },
    all,
    list: async () => (await all()).filter(({ revokedAt }) => revokedAt === null),
    restore: async (key) => {
      await whileRedisServes(client.hsetnx(apiKeysKey, key.keyHash, encode(key)));
    },
    revoke: async (keyHash) => {
      const stored = await read(keyHash);
      if (stored === null) return false;
      await write({ ...stored, revokedAt: now() });
      return true;
    },
  };
}

const now = (): string => new Date().toISOString();

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

const encode = ({ tenant, requestsPerMinute, scopes, createdAt, revokedAt }: KeptKey): string =>
  JSON.stringify({
    tenant,
    requests_per_minute: requestsPerMinute,
    scopes,
    created_at: createdAt,
    ...(revokedAt === null ? {} : { revoked_at: revokedAt }),
  });

function keptKey(keyHash: string, stored: string): KeptKey {
  const value: unknown = JSON.parse(stored);
  if (!storedKeyCheck.Check(value)) throw new Error(`the stored API key ${keyHash} is not readable`);
  const scopes: readonly Scope[] = allScopes.filter((scope) => value.scopes.includes(scope));
  const { tenant, requests_per_minute: requestsPerMinute, created_at: createdAt } = value;
  return { keyHash, tenant, requestsPerMinute, scopes, createdAt, revokedAt: value.revoked_at ?? null };
}

const windowMs = 60_000;

export const createQuotaCounter = (client: RedisClient): QuotaCounter => ({
  take: async (keyHash, amount) => {
    const [taken, endsInMs] = await whileRedisServes(client.takeQuota(quotaKey(keyHash), amount, windowMs));
    return { taken, endsInMs };
  },
});
