import { hash, randomBytes, randomInt } from 'node:crypto';
import { singleFlightByName } from '../concurrency.js';
import { type Grant, hashKey } from '../contracts/access/access.js';
import { unauthorized } from '../errors.js';

/** A revoked key works for up to this time. */
const grantCacheMs = 2000;
/** Limit for valid and for invalid keys: invalid keys cannot evict valid ones. */
const maxCachedKeys = 10_000;

interface KeyLookup {
  find(keyHash: string): Promise<Grant | null>;
}

interface CachedGrant {
  readonly grant: Grant | null;
  readonly validUntil: number;
}

/** Keys in these slots need no digest, the most expensive check of a request. A power of 2. */
const recentKeySlots = 1024;

/** The secret hides the slot, so that timing reveals nothing. */
function computeSlot(secret: number, key: string): number {
  let mixed = secret;
  for (let i = 0; i < key.length; i++) mixed = Math.imul(mixed ^ key.charCodeAt(i), 0x01000193);
  return (mixed ^ (mixed >>> 15)) & (recentKeySlots - 1);
}

/** Constant time for keys of the same length, which is no secret. */
function isSameKey(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i);
  return difference === 0;
}

export type Authenticator = ReturnType<typeof createAuthenticator>;

/**
 * Redis has only SHA-256 digests. The cache adds a secret of this process, so that lookup times reveal
 * nothing about a key or its stored digest.
 * @param now monotonic: a clock that is set back would keep a revoked key valid
 */
export function createAuthenticator(keys: KeyLookup, now: () => number) {
  const secret = randomBytes(16).toString('hex');
  const slotSecret = randomInt(2 ** 31);
  const recentKeys: ({ readonly key: string; readonly cached: CachedGrant } | undefined)[] =
    Array(recentKeySlots).fill(undefined);
  const validKeys = new Map<string, CachedGrant>();
  const invalidKeys = new Map<string, CachedGrant>();

  const lookUpGrant = singleFlightByName(async (name: string, key: string): Promise<Grant | null> => {
    // Measured from the request: the process may be blocked before the reply.
    const validUntil = now() + grantCacheMs;
    const grant = await keys.find(hashKey(key));
    validKeys.delete(name);
    invalidKeys.delete(name);
    const cache = grant === null ? invalidKeys : validKeys;
    cache.set(name, { grant, validUntil });
    if (cache.size > maxCachedKeys) cache.delete(cache.keys().next().value ?? '');
    return grant;
  });

  return {
    /** Synchronous for a recent key. @throws ApiError UNAUTHORIZED, UNAVAILABLE */
    authenticate: (key: string | null): Grant | Promise<Grant> => {
      if (key === null) throw unauthorized('The header X-API-Key is missing; send an API key.');
      const slot = computeSlot(slotSecret, key);
      const recent = recentKeys[slot];
      if (recent !== undefined && isSameKey(recent.key, key) && recent.cached.validUntil > now())
        return requireGrant(recent.cached.grant);
      const name = hash('sha256', secret + key);
      const cached = validKeys.get(name) ?? invalidKeys.get(name);
      if (cached === undefined || cached.validUntil <= now())
        return lookUpGrant(name, key).then(requireGrant);
      if (cached.grant !== null) recentKeys[slot] = { key, cached };
      return requireGrant(cached.grant);
    },
  };
}

function requireGrant(grant: Grant | null): Grant {
  if (grant === null) throw unauthorized('The API key is unknown or revoked.');
  return grant;
}
