import { hash, randomBytes } from 'node:crypto';
import { ApiError } from '../errors.js';
import type { Grant, KeyRing } from '../services/ports.js';

export interface Authenticator {
  /**
   * At once for a key that was looked up lately, as nearly all are: waiting would cost more than the look.
   * @throws ApiError UNAUTHORIZED, or UNAVAILABLE where the key cannot be looked up
   */
  authenticate(key: string | null): Grant | Promise<Grant>;
}

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

/**
 * Knows callers by the hash of their key; keys are only ever stored and looked up as SHA-256 digests. What was looked
 * up lately is kept under a digest made with a secret of this process. Tables compare what they hold byte by byte, and
 * stop at the first that differs: of such digests that tells nothing about a key, or about the digest in store.
 *
 * @param now monotonic clock in milliseconds: a clock that is set back would keep a revoked key alive
 */
export function createAuthenticator(keys: KeyRing, now: () => number): Authenticator {
  const secret = randomBytes(16).toString('hex');
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
    authenticate: (key) => {
      if (key === null) throw unauthorized('The header X-API-Key is missing');
      const name = hash('sha256', secret + key);
      const remembered = known.get(name) ?? unknown.get(name);
      return remembered !== undefined && remembered.until > now()
        ? granted(remembered.grant)
        : find(key, name);
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

/** What a caller without a key that works here is told. */
export const unauthorized = (message: string): ApiError =>
  new ApiError('UNAUTHORIZED', message, { headers: { 'WWW-Authenticate': 'ApiKey' } });
