import { hash, randomBytes, randomInt } from 'node:crypto';
import type { Grant, KeyRing } from '../contracts/access.js';
import { ApiError } from '../errors.js';

export type Authenticator = ReturnType<typeof createAuthenticator>;

/** How long a look-up is trusted: a revoked key works at most this long. */
const trustedMs = 2000;
/** Of the keys that work and of the others, each: made-up keys push out nobody who has one. */
const maxRemembered = 10_000;

interface LookUp {
  readonly grant: Grant | null;
  readonly until: number;
}

type LookUps = Map<string, LookUp>;

/** Of too many forgets the oldest. */
function remember(lookUps: LookUps, name: string, lookUp: LookUp): void {
  lookUps.set(name, lookUp);
  if (lookUps.size > maxRemembered) lookUps.delete(lookUps.keys().next().value ?? '');
}

/** In front of the digests, for each costs more than all other checks of a head together. */
interface LastKey {
  readonly key: string;
  readonly lookUp: LookUp;
}

/** A power of 2. Keys that share a place put each other out of it: their digests decide then. */
const lastKeys = 1024;

/** Which place a key has is known to nobody outside, so that no time reveals what stands there. */
function placeOf(secret: number, key: string): number {
  let mixed = secret;
  for (let i = 0; i < key.length; i++) mixed = Math.imul(mixed ^ key.charCodeAt(i), 0x01000193);
  return (mixed ^ (mixed >>> 15)) & (lastKeys - 1);
}

/** Looks at every character, whichever differs. Of the length of a key nobody makes a secret. */
function isSame(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let i = 0; i < one.length; i++) difference |= one.charCodeAt(i) ^ other.charCodeAt(i);
  return difference === 0;
}

/**
 * Knows callers by the hash of their key; keys are only ever stored and looked up as SHA-256 digests. What was looked
 * up lately is kept under a digest made with a secret of this process. Tables compare what they hold byte by byte, and
 * stop at the first that differs: of such digests that reveals nothing about a key, or about the digest in store. The keys
 * that were seen last, and work, are compared in constant time in front of them.
 *
 * @param now monotonic clock in milliseconds: a clock that is set back would keep a revoked key alive
 */
export function createAuthenticator(keys: KeyRing, now: () => number) {
  const secret = randomBytes(16).toString('hex');
  const placeSecret = randomInt(2 ** 31);
  const last: (LastKey | undefined)[] = Array(lastKeys).fill(undefined);
  const known: LookUps = new Map();
  const unknown: LookUps = new Map();
  const pending = new Map<string, Promise<Grant | null>>();

  const lookUp = async (key: string, name: string): Promise<Grant | null> => {
    // From here on, not from when the answer was read: a process may have stood still in between.
    const until = now() + trustedMs;
    try {
      const grant = await keys.find(hashKey(key));
      for (const lookUps of [known, unknown]) lookUps.delete(name);
      remember(grant === null ? unknown : known, name, { grant, until });
      return grant;
    } finally {
      pending.delete(name);
    }
  };

  const find = async (key: string, name: string): Promise<Grant> => {
    const asked = pending.get(name) ?? lookUp(key, name);
    pending.set(name, asked);
    return granted(await asked);
  };

  return {
    /**
     * At once for a key that was looked up lately, as nearly all are: waiting would cost more than the look.
     * @throws ApiError UNAUTHORIZED, or UNAVAILABLE where the key cannot be looked up
     */
    authenticate: (key: string | null): Grant | Promise<Grant> => {
      if (key === null) throw unauthorized('The header X-API-Key is missing');
      const place = placeOf(placeSecret, key);
      const seen = last[place];
      if (seen !== undefined && isSame(seen.key, key) && seen.lookUp.until > now())
        return granted(seen.lookUp.grant);
      const name = hash('sha256', secret + key);
      const lookUp = known.get(name) ?? unknown.get(name);
      if (lookUp === undefined || lookUp.until <= now()) return find(key, name);
      if (lookUp.grant !== null) last[place] = { key, lookUp };
      return granted(lookUp.grant);
    },
  };
}

function granted(grant: Grant | null): Grant {
  if (grant === null) throw unauthorized('The API key is not known');
  return grant;
}

/** Name under which a key is stored; the key itself never is. */
export const hashKey = (key: string): string => hash('sha256', key);

/** As much of it as people are shown. */
export const shortHash = (keyHash: string): string => keyHash.slice(0, 12);

/** The error of a caller without a key that works here. */
export const unauthorized = (message: string): ApiError =>
  new ApiError('UNAUTHORIZED', message, { headers: { 'WWW-Authenticate': 'ApiKey' } });
