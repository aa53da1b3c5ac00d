import { singleFlights } from '../concurrency.js';
import type { Grant } from '../contracts/access.js';
import { ApiError } from '../errors.js';
import type { Headers } from './exchange.js';

const windowSeconds = 60;
/** Up to this quota every request is counted in Redis; above, a process takes a thousandth at a time. */
const exactUpTo = 10_000;
const leaseShare = 1000;

type Counter = { take(keyHash: string, amount: number): Promise<{ taken: number; endsInMs: number }> };

interface Lease {
  left: number;
  readonly endsAt: number;
  /** Taken from the window by all processes when this lease was taken, itself included. */
  readonly taken: number;
}

export type QuotaGate = ReturnType<typeof createQuotaGate>;

/**
 * Fixed windows of 60 s that open with a key's first request. Large quotas are taken from Redis in small leases,
 * so that most requests cost no round trip; what a lease holds was taken before, so a quota is never exceeded.
 */
export function createQuotaGate(counter: Counter, now: () => number) {
  const leases = new Map<string, Lease>();

  const renew = async (grant: Grant, quota: number, amount: number): Promise<Lease> => {
    const { taken, endsInMs } = await counter.take(grant.keyHash, amount);
    const left = Math.max(0, Math.min(amount, quota - (taken - amount)));
    return { left, endsAt: now() + endsInMs, taken };
  };

  /** Requests that find the lease spent together wait for one new lease, else each would take one and drop it. */
  const renewShared = singleFlights(async (keyHash: string, grant: Grant, quota: number): Promise<void> => {
    leases.set(keyHash, await renew(grant, quota, Math.floor(quota / leaseShare)));
  });

  /** A lease serves while something is left of it, and a spent window until it ends. */
  const leaseOf = (grant: Grant, quota: number): Lease | null => {
    const held = leases.get(grant.keyHash);
    const serves = held !== undefined && now() < held.endsAt && (held.left > 0 || held.taken >= quota);
    return serves ? held : null;
  };

  /**
   * To be called the moment a lease is found to serve: after an await others may have spent it.
   * @throws ApiError RATE_LIMITED
   */
  const take = (lease: Lease, quota: number): Headers => {
    const allowed = lease.left > 0;
    if (allowed) lease.left -= 1;
    const seconds = Math.max(1, Math.ceil((lease.endsAt - now()) / 1000));
    const remaining = Math.max(0, quota - lease.taken) + lease.left;
    // Structured fields of draft-ietf-httpapi-ratelimit-headers.
    const headers = {
      'RateLimit-Policy': `"default";q=${quota};w=${windowSeconds}`,
      RateLimit: `"default";r=${remaining};t=${seconds}`,
    };
    if (allowed) return headers;
    throw new ApiError('RATE_LIMITED', `This key may make ${quota} requests per ${windowSeconds} s`, {
      headers: { ...headers, 'Retry-After': `${seconds}` },
    });
  };

  const passLater = async (grant: Grant, quota: number): Promise<Headers> => {
    if (quota <= exactUpTo) return take(await renew(grant, quota, 1), quota);
    for (;;) {
      const held = leaseOf(grant, quota);
      if (held !== null) return take(held, quota);
      await renewShared(grant.keyHash, grant, quota);
    }
  };

  return {
    /**
     * Takes one request from the key's quota; at once where a lease holds some.
     * @returns the headers that say where the key stands
     * @throws ApiError RATE_LIMITED, UNAVAILABLE
     */
    pass: (grant: Grant): Headers | Promise<Headers> => {
      const quota = grant.requestsPerMinute;
      if (quota === null) return {};
      const held = quota > exactUpTo ? leaseOf(grant, quota) : null;
      return held === null ? passLater(grant, quota) : take(held, quota);
    },
  };
}
