import { hash, randomBytes, randomInt } from 'node:crypto';
import { singleFlights } from '../concurrency.js';
import { type Grant, hashKey } from '../contracts/access.js';
import { unauthorized } from '../errors.js';

/** A revoked key works for up to this time. */
const trustedMs = 2000;
/** Limit for valid and for invalid keys: invalid keys cannot evict valid ones. */
const maxRemembered = 10_000;

interface Keys {
  find(keyHash: string): Promise<Grant | null>;
}

interface LookUp {
  readonly grant: Grant | null;
  readonly until: number;
}

/** Keys in these slots need no digest, the most expensive check of a request. A power of 2. */
const lastKeys = 1024;

/** The secret hides the slot, so that timing reveals nothing. */
function placeOf(secret: number, key: string): number {
  let mixed = secret;
  for (let i = 0; i < key.length; i++) mixed = Math.imul(mixed ^ key.charCodeAt(i), 0x01000193);
  return (mixed ^ (mixed >>> 15)) & (lastKeys - 1);
}

/** Constant time for keys of the same length, which is no secret. */
function isSame(one: string, other: string): boolean {
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
export function createAuthenticator(keys: Keys, now: () => number) {
  const secret = randomBytes(16).toString('hex');
  const placeSecret = randomInt(2 ** 31);
  const last: ({ readonly key: string; readonly lookUp: LookUp } | undefined)[] =
    Array(lastKeys).fill(undefined);
  const known = new Map<string, LookUp>();
  const unknown = new Map<string, LookUp>();

  const lookUpOf = singleFlights(async (name: string, key: string): Promise<Grant | null> => {
    // Measured from the request: the process may be blocked before the reply.
    const until = now() + trustedMs;
    const grant = await keys.find(hashKey(key));
    known.delete(name);
    unknown.delete(name);
    const lookUps = grant === null ? unknown : known;
    lookUps.set(name, { grant, until });
    if (lookUps.size > maxRemembered) lookUps.delete(lookUps.keys().next().value ?? '');
    return grant;
  });

  return {
    /** Synchronous for a recent key. @throws ApiError UNAUTHORIZED, UNAVAILABLE */
    authenticate: (key: string | null): Grant | Promise<Grant> => {
      if (key === null) throw unauthorized('The header X-API-Key is missing');
      const place = placeOf(placeSecret, key);
      const seen = last[place];
      if (seen !== undefined && isSame(seen.key, key) && seen.lookUp.until > now())
        return granted(seen.lookUp.grant);
      const name = hash('sha256', secret + key);
      const lookUp = known.get(name) ?? unknown.get(name);
      if (lookUp === undefined || lookUp.until <= now()) return lookUpOf(name, key).then(granted);
      if (lookUp.grant !== null) last[place] = { key, lookUp };
      return granted(lookUp.grant);
    },
  };
}

function granted(grant: Grant | null): Grant {
  if (grant === null) throw unauthorized('The API key is not known');
  return grant;
}
