import { createHash } from 'node:crypto';
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
/** Beyond this many look-ups the memory starts anew, so that made-up keys cannot fill it. */
const maxRemembered = 10_000;

interface LookUp {
  readonly grant: Grant | null;
  readonly until: number;
}

/**
 * Knows callers by the hash of their key; keys are only ever stored and looked up as SHA-256 digests. What was looked
 * up lately is kept under the key itself, in a table whose hashes are seeded anew in each process: how long a look
 * takes tells nothing about a key.
 */
export function createAuthenticator(keys: KeyRing, now: () => number): Authenticator {
  const known = new Map<string, LookUp>();
  const pending = new Map<string, Promise<Grant | null>>();

  const lookUp = async (key: string): Promise<Grant | null> => {
    try {
      const grant = await keys.find(hashKey(key));
      if (known.size >= maxRemembered) known.clear();
      known.set(key, { grant, until: now() + trustedMs });
      return grant;
    } finally {
      pending.delete(key);
    }
  };

  const find = async (key: string): Promise<Grant> => {
    const asked = pending.get(key) ?? lookUp(key);
    pending.set(key, asked);
    return granted(await asked);
  };

  return {
    authenticate: (key) => {
      if (key === null) throw unauthorized('The header X-API-Key is missing');
      const remembered = known.get(key);
      return remembered !== undefined && remembered.until > now() ? granted(remembered.grant) : find(key);
    },
  };
}

function granted(grant: Grant | null): Grant {
  if (grant === null) throw unauthorized('The API key is not known');
  return grant;
}

/** Name under which a key is stored; the key itself never is. */
export const hashKey = (key: string): string => createHash('sha256').update(key).digest('hex');

const unauthorized = (message: string): ApiError =>
  new ApiError('UNAUTHORIZED', message, { headers: { 'WWW-Authenticate': 'ApiKey' } });
