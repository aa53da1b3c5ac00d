import type { Grant, QuotaCounter } from '../contracts/access.js';
import { ApiError } from '../errors.js';

type QuotaHeaders = Readonly<Record<string, string>>;

export type QuotaGate = ReturnType<typeof createQuotaGate>;

const windowSeconds = 60;
/** Up to this quota every request is counted in Redis; above, a process takes a thousandth at a time. */
const exactUpTo = 10_000;
const leaseShare = 1000;

interface Lease {
  left: number;
  endsAt: number;
  /** Taken from the window by all processes when this lease was taken, itself included. */
  taken: number;
}

/** One request's turn: what was left for it and for those after it. */
type Turn = Readonly<Lease> & { readonly allowed: boolean };

/** Taken the moment a lease is found to serve: after an await others may have spent it. */
function take(lease: Lease): Turn {
  const allowed = lease.left > 0;
  if (allowed) lease.left -= 1;
  return { left: lease.left, endsAt: lease.endsAt, taken: lease.taken, allowed };
}

/**
 * Fixed windows of 60 s that open with a key's first request. Large quotas are taken from Redis in small leases,
 * so that most requests cost no round trip; what a lease holds was taken before, so a quota is never exceeded.
 */
export function createQuotaGate(counter: QuotaCounter, now: () => number) {
  const leases = new Map<string, Lease>();
  const renewals = new Map<string, Promise<Lease>>();

  const renew = async (grant: Grant, quota: number, amount: number): Promise<Lease> => {
    const { taken, endsInMs } = await counter.take(grant.keyHash, amount);
    const left = Math.max(0, Math.min(amount, quota - (taken - amount)));
    return { left, endsAt: now() + endsInMs, taken };
  };

  const leaseOf = (grant: Grant, quota: number): Lease | null => {
    const held = leases.get(grant.keyHash);
    return held !== undefined && usable(held, quota, now()) ? held : null;
  };

  /** Requests that find the lease spent together wait for one new lease, else each would take one and drop it. */
  const share = async (grant: Grant, quota: number): Promise<Turn> => {
    for (;;) {
      const held = leaseOf(grant, quota);
      if (held !== null) return take(held);
      const running = renewals.get(grant.keyHash);
      if (running === undefined) await renewShared(grant, quota);
      else await running;
    }
  };

  const renewShared = async (grant: Grant, quota: number): Promise<void> => {
    const renewal = renew(grant, quota, Math.floor(quota / leaseShare));
    renewals.set(grant.keyHash, renewal);
    try {
      leases.set(grant.keyHash, await renewal);
    } finally {
      renewals.delete(grant.keyHash);
    }
  };

  /** @throws ApiError RATE_LIMITED */
  const standing = (quota: number, turn: Turn): QuotaHeaders => {
    const headers = headersOf(quota, turn, now());
    if (!turn.allowed) throw limited(quota, turn, headers, now());
    return headers;
  };

  const passLater = async (grant: Grant, quota: number): Promise<QuotaHeaders> =>
    standing(quota, quota <= exactUpTo ? take(await renew(grant, quota, 1)) : await share(grant, quota));

  return {
    /**
     * Takes one request from the key's quota; at once where a lease holds some.
     * @returns the headers that say where the key stands
     * @throws ApiError RATE_LIMITED, UNAVAILABLE
     */
    pass: (grant: Grant): QuotaHeaders | Promise<QuotaHeaders> => {
      const quota = grant.requestsPerMinute;
      if (quota === null) return {};
      const held = quota > exactUpTo ? leaseOf(grant, quota) : null;
      return held === null ? passLater(grant, quota) : standing(quota, take(held));
    },
  };
}

/** A lease serves while something is left of it, and a spent window until it ends. */
const usable = (lease: Lease, quota: number, time: number): boolean =>
  time < lease.endsAt && (lease.left > 0 || lease.taken >= quota);

const secondsLeft = (lease: Lease, time: number): number =>
  Math.max(1, Math.ceil((lease.endsAt - time) / 1000));

/** Structured fields of draft-ietf-httpapi-ratelimit-headers. */
function headersOf(quota: number, lease: Lease, time: number): QuotaHeaders {
  const remaining = Math.max(0, quota - lease.taken) + lease.left;
  return {
    'RateLimit-Policy': `"default";q=${quota};w=${windowSeconds}`,
    RateLimit: `"default";r=${remaining};t=${secondsLeft(lease, time)}`,
  };
}

function limited(quota: number, lease: Lease, headers: QuotaHeaders, time: number): ApiError {
  return new ApiError('RATE_LIMITED', `This key may make ${quota} requests per ${windowSeconds} s`, {
    headers: { ...headers, 'Retry-After': `${secondsLeft(lease, time)}` },
  });
}
