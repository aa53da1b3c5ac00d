import Type from 'typebox';
import { Compile } from 'typebox/compile';
import {
  allScopes,
  type Grant,
  type KeyRing,
  type QuotaCounter,
  type Scope,
} from '../../contracts/access.js';
import { unavailable } from '../../errors.js';
import type { KeptKey } from '../../services/rebuild/deployment-facts.js';
import { decodeEach, refuseUnreadable, type TellUnreadable } from '../learners/decode-each.js';
import { type RedisClient, whileRedisServes } from '../redis/client.js';
import { apiKeysKey, metaKey, quotaKey } from '../redis/keys.js';
import { defineScript } from '../redis/script.js';

/** A key as it is stored: never the key itself, only its hash as the field's name. */
const StoredKey = Type.Object({
  tenant: Type.String(),
  requests_per_minute: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]),
  scopes: Type.Array(Type.Enum([...allScopes])),
  /** Of the development key only. */
  development: Type.Optional(Type.Literal(true)),
  created_at: Type.String(),
  /** Kept after its end, so that ClickHouse can be told of it. */
  revoked_at: Type.Optional(Type.String()),
});
const storedKeyCheck = Compile(StoredKey);

/**
 * Sets a field of a hash where nobody else has set it meanwhile.
 * KEYS: the hash. ARGV: field, value that it is expected to have ('': none), new value.
 * Result: 1 where it was set.
 */
const replaceField = defineScript(1)<[key: string, field: string, expected: string, value: string], 0 | 1>(`
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`);

/**
 * Takes from an API key's quota; the window opens with its first request.
 * KEYS: the key's counter. ARGV: amount, window in milliseconds.
 * Result: taken so far in this window, milliseconds until it ends.
 */
const takeFromQuota = defineScript(1)<
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

export interface KeyStore extends KeyRing {
  /**
   * Adds a key, or gives the one in store a new quota; tenant and scopes of a stored key stay, unless it turns out to be
   * the development key. A revoked key stays revoked.
   */
  put(grant: Grant): Promise<'added' | 'updated' | 'revoked'>;
  list(): Promise<KeptKey[]>;
  /** Those that were revoked as well. */
  all(): Promise<KeptKey[]>;
  /** Puts a key as it was kept, unless it is there; its end counts in any case. */
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
  const change = (keyHash: string, decide: Decide) => changeKey(client, keyHash, decide);
  const all = async (): Promise<KeptKey[]> => {
    const keys = decodeEach(await whileRedisServes(client.hgetall(apiKeysKey)), keptKey, tell);
    return keys.sort((a, b) => a.createdAt.localeCompare(b.createdAt));
  };
  return {
    find: read,
    put: async (grant) => {
      const stored = await change(grant.keyHash, (found) => withGrant(found, grant));
      if (stored === null) return 'added';
      return stored.revokedAt === null ? 'updated' : 'revoked';
    },
    all,
    list: async () => (await all()).filter(({ revokedAt }) => revokedAt === null),
    restore: async (key) => {
      const ends = key.revokedAt !== null;
      await change(key.keyHash, (found) =>
        found === null || (ends && found.revokedAt === null) ? key : null,
      );
    },
    revoke: async (keyHash) => {
      const stored = await change(keyHash, (found) =>
        found?.revokedAt === null ? { ...found, revokedAt: now() } : null,
      );
      return stored?.revokedAt === null;
    },
  };
}

const now = (): string => new Date().toISOString();

/** What is to be stored for what is in store; null to leave it. */
type Decide = (stored: KeptKey | null) => KeptKey | null;

function withGrant(stored: KeptKey | null, grant: Grant): KeptKey | null {
  if (stored === null) return { ...grant, createdAt: now(), revokedAt: null };
  if (stored.revokedAt !== null) return null;
  const { requestsPerMinute, scopes, development } = grant;
  // Versions before made it without a mark.
  return { ...stored, requestsPerMinute, ...(development ? { scopes, development } : {}) };
}

/**
 * Compares and sets: a start that gives a key its quota meets the command that revokes it.
 * @returns what was in store before
 */
async function changeKey(client: RedisClient, keyHash: string, decide: Decide): Promise<KeptKey | null> {
  for (;;) {
    const text = await whileRedisServes(client.hget(apiKeysKey, keyHash));
    const stored = text === null ? null : keptKey(keyHash, text);
    const next = decide(stored);
    if (next === null) return stored;
    const replace = replaceField(client, apiKeysKey, keyHash, text ?? '', encode(next));
    if ((await whileRedisServes(replace)) === 1) return stored;
  }
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

const encode = ({ tenant, requestsPerMinute, scopes, development, createdAt, revokedAt }: KeptKey): string =>
  JSON.stringify({
    tenant,
    requests_per_minute: requestsPerMinute,
    scopes,
    ...(development ? { development } : {}),
    created_at: createdAt,
    ...(revokedAt === null ? {} : { revoked_at: revokedAt }),
  });

function keptKey(keyHash: string, stored: string): KeptKey {
  const value: unknown = JSON.parse(stored);
  if (!storedKeyCheck.Check(value)) throw new Error(`the stored API key ${keyHash} is not readable`);
  const scopes: readonly Scope[] = allScopes.filter((scope) => value.scopes.includes(scope));
  const {
    tenant,
    requests_per_minute: requestsPerMinute,
    created_at: createdAt,
    development = false,
  } = value;
  const revokedAt = value.revoked_at ?? null;
  return { keyHash, tenant, requestsPerMinute, scopes, development, createdAt, revokedAt };
}

const windowMs = 60_000;

export const createQuotaCounter = (client: RedisClient): QuotaCounter => ({
  take: async (keyHash, amount) => {
    const [taken, endsInMs] = await whileRedisServes(
      takeFromQuota(client, quotaKey(keyHash), amount, windowMs),
    );
    return { taken, endsInMs };
  },
});
