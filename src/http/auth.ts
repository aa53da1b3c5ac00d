import { createHash } from 'node:crypto';
import { ApiError } from '../errors.js';
import type { Grant, KeyRing } from '../services/ports.js';

export interface Authenticator {
  /** @throws ApiError UNAUTHORIZED, or UNAVAILABLE where the key cannot be looked up */
  authenticate(key: string | null): Promise<Grant>;
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
 * Knows callers by the hash of their key. Keys are compared as SHA-256 digests, so the time that a comparison
 * takes tells nothing about a key.
 */
export function createAuthenticator(keys: KeyRing, now: () => number): Authenticator {
  const known = new Map<string, LookUp>();
  const pending = new Map<string, Promise<Grant | null>>();

  const lookUp = async (hash: string): Promise<Grant | null> => {
    try {
      const grant = await keys.find(hash);
      if (known.size >= maxRemembered) known.clear();
      known.set(hash, { grant, until: now() + trustedMs });
      return grant;
    } finally {
      pending.delete(hash);
    }
  };

  const find = (hash: string): Promise<Grant | null> => {
    const asked = pending.get(hash) ?? lookUp(hash);
    pending.set(hash, asked);
    return asked;
  };

  return {
    authenticate: async (key) => {
      if (key === null) throw unauthorized('The header X-API-Key is missing');
      const hash = hashKey(key);
      const remembered = known.get(hash);
      const grant =
        remembered !== undefined && remembered.until > now() ? remembered.grant : await find(hash);
      if (grant === null) throw unauthorized('The API key is not known');
      return grant;
    },
  };
}

/** Name under which a key is stored; the key itself never is. */
export const hashKey = (key: string): string => createHash('sha256').update(key).digest('hex');

const unauthorized = (message: string): ApiError =>
  new ApiError('UNAUTHORIZED', message, { headers: { 'WWW-Authenticate': 'ApiKey' } });
