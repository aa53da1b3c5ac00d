import { BlockList, isIP, isIPv6 } from 'node:net';
import { singleFlightByName } from '../concurrency.js';
import type { Grant, RequiredScope } from '../contracts/access/access.js';
import { parseIfMatch } from '../contracts/schema/preconditions.js';
import { ApiError, methodNotAllowed, pathNotFound, unauthorized } from '../errors.js';
import type { Authenticator } from './authenticator.js';
import { ClientDisconnectedError, type Exchange, type Headers } from './exchange.js';
import {
  checkEncoding,
  checkMediaType,
  type HttpCall,
  parseIdempotencyKey,
  type Reply,
  type Route,
  type RouteMatch,
} from './route.js';

export interface AdmittedRequest {
  readonly route: Route;
  readonly grant: Grant | null;
  readonly mediaType: string;
  readonly gzip: boolean;
}

export type Gate = ReturnType<typeof createGate>;

export function createGate(auth: Authenticator, quota: QuotaGate) {
  /**
   * Checks in the order of the API contract, without a promise unless Redis is needed.
   * @param headers collects response headers, also of errors
   * @throws ApiError
   */
  return (
    exchange: Exchange,
    match: RouteMatch,
    headers: Headers[],
  ): AdmittedRequest | Promise<AdmittedRequest> => {
    if (exchange.framingProblem !== null) throw new ApiError('INVALID_REQUEST', exchange.framingProblem);
    if (match.isKeyless) return admit(exchange, requireRoute(exchange, match), null);
    const { protocol } = match;
    const key = protocol ? protocol.readKey(exchange) : exchange.header('x-api-key');
    const found = auth.authenticate(key);
    if (found instanceof Promise) return found.then((grant) => checkQuota(exchange, match, headers, grant));
    return checkQuota(exchange, match, headers, found);
  };

  function checkQuota(exchange: Exchange, match: RouteMatch, headers: Headers[], grant: Grant) {
    exchange.keyHash = grant.keyHash;
    if (grant.development) checkLocalCaller(exchange);
    const route = requireRoute(exchange, match);
    const admitted = (more: Headers): AdmittedRequest => {
      headers.push(more);
      return admit(exchange, route, grant);
    };
    const passed = quota.pass(grant);
    return passed instanceof Promise ? passed.then(admitted) : admitted(passed);
  }
}

function requireRoute({ method, unknownPath }: Exchange, match: RouteMatch): Route {
  const { route, allow, hasExtraSlash } = match;
  if (route !== null) return route;
  throw allow === null ? pathNotFound(method, unknownPath, hasExtraSlash) : methodNotAllowed(method, allow);
}

function admit(exchange: Exchange, route: Route, grant: Grant | null): AdmittedRequest {
  const { scope } = route;
  if (grant !== null && scope !== null && !allowsScope(grant, scope))
    throw new ApiError(
      'FORBIDDEN',
      `This key lacks a scope that the call needs: ${[scope].flat().join(' or ')}.`,
    );
  if (grant !== null) route.protocol?.checkHead(exchange);
  if (route.body === null || (route.body.optional && hasNoBody(exchange)))
    return { route, grant, mediaType: '', gzip: false };
  const mediaType = checkMediaType(exchange.header('content-type'), route.body);
  const gzip = checkEncoding(exchange.header('content-encoding'), route.body) === 'gzip';
  return { route, grant, mediaType, gzip };
}

const allowsScope = ({ scopes }: Grant, needed: RequiredScope): boolean =>
  typeof needed === 'string' ? scopes.includes(needed) : needed.some((one) => scopes.includes(one));

const hasNoBody = (exchange: Exchange): boolean =>
  exchange.header('content-type') === null &&
  exchange.header('transfer-encoding') === null &&
  Number(exchange.header('content-length')) === 0;

const emptyGrant: Grant = {
  keyHash: '',
  tenant: '',
  requestsPerMinute: null,
  scopes: [],
  development: false,
};

export function createCall(
  exchange: Exchange,
  { route, grant: known, mediaType }: AdmittedRequest,
  body: Buffer,
  respond: (reply: Reply) => void,
): HttpCall {
  const replaces = route.method === 'PUT' || route.method === 'DELETE';
  const grant = known ?? emptyGrant;
  return {
    grant,
    tenant: grant.tenant,
    body,
    mediaType,
    query: route.query?.read(exchange.query),
    idempotencyKey: route.body === null ? null : parseIdempotencyKey(exchange.header('idempotency-key')),
    head: exchange,
    ifMatch: replaces ? parseIfMatch(exchange.header('if-match')) : null,
    throwIfDisconnected: () => {
      if (exchange.isDone) throw new ClientDisconnectedError();
    },
    respond,
    span: exchange.span,
  };
}

const loopback = new BlockList();
// Also matches ::ffff:127.0.0.0/104.
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Does not resolve names. @param host without port and brackets */
export function isLoopbackHost(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === 'localhost';
  return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

const authority = /^(?:\[([\da-f:.]+)\]|([a-z\d.]+?)\.?)(?::\d{0,5})?$/i;

/** For the header Host. Other names may resolve to this machine. */
export function isLoopbackAuthority(header: string): boolean {
  const [, literal, name] = authority.exec(header) ?? [];
  if (literal !== undefined) return isIPv6(literal) && isLoopbackHost(literal);
  return name !== undefined && isLoopbackHost(name);
}

/** @throws ApiError UNAUTHORIZED */
function checkLocalCaller(exchange: Exchange): void {
  const isProxied = exchange.headerNames().some((name) => /^(forwarded$|via$|x-forwarded-)/.test(name));
  const isLocal =
    isLoopbackHost(exchange.peerAddress()) && isLoopbackAuthority(exchange.header('host') ?? '');
  if (isLocal && !isProxied) return;
  throw unauthorized(
    'The development key only works on the machine of the service, without a proxy. Create another key with npm run keys -- create.',
  );
}

const windowSeconds = 60;
/** Redis counts each request up to this quota; above, processes take leases. */
const maxExactQuota = 10_000;
const leaseShare = 1000;

type Counter = { take(keyHash: string, amount: number): Promise<{ taken: number; endsInMs: number }> };

interface Lease {
  left: number;
  readonly endsAt: number;
  /** Total of the window, over all processes. */
  readonly taken: number;
}

export type QuotaGate = ReturnType<typeof createQuotaGate>;

/**
 * Fixed windows of 60 s from a key's first request. Large quotas are leased in small parts: most requests
 * need no round trip, and no quota is exceeded.
 */
export function createQuotaGate(counter: Counter, now: () => number) {
  const leases = new Map<string, Lease>();

  const renew = async (grant: Grant, quota: number, amount: number): Promise<Lease> => {
    const { taken, endsInMs } = await counter.take(grant.keyHash, amount);
    const left = Math.max(0, Math.min(amount, quota - (taken - amount)));
    return { left, endsAt: now() + endsInMs, taken };
  };

  const renewShared = singleFlightByName(
    async (keyHash: string, grant: Grant, quota: number): Promise<void> => {
      leases.set(keyHash, await renew(grant, quota, Math.floor(quota / leaseShare)));
    },
  );

  /** @returns null if the window ended, or the lease is spent and quota remains */
  const findLease = (grant: Grant, quota: number): Lease | null => {
    const held = leases.get(grant.keyHash);
    const serves = held !== undefined && now() < held.endsAt && (held.left > 0 || held.taken >= quota);
    return serves ? held : null;
  };

  /** Do not await after `findLease`: others may spend the lease. @throws ApiError RATE_LIMITED */
  const consume = (lease: Lease, quota: number): Headers => {
    const allowed = lease.left > 0;
    if (allowed) lease.left -= 1;
    const seconds = Math.max(1, Math.ceil((lease.endsAt - now()) / 1000));
    const remaining = Math.max(0, quota - lease.taken) + lease.left;
    // Fields of draft-ietf-httpapi-ratelimit-headers.
    const headers = {
      'RateLimit-Policy': `"default";q=${quota};w=${windowSeconds}`,
      RateLimit: `"default";r=${remaining};t=${seconds}`,
    };
    if (allowed) return headers;
    throw new ApiError(
      'RATE_LIMITED',
      `The quota of this key is ${quota} requests per ${windowSeconds} s; retry after the time in Retry-After.`,
      {
        headers: { ...headers, 'Retry-After': `${seconds}` },
      },
    );
  };

  const passWithRedis = async (grant: Grant, quota: number): Promise<Headers> => {
    if (quota <= maxExactQuota) return consume(await renew(grant, quota, 1), quota);
    for (;;) {
      const held = findLease(grant, quota);
      if (held !== null) return consume(held, quota);
      await renewShared(grant.keyHash, grant, quota);
    }
  };

  return {
    /** Synchronous with a lease. @throws ApiError RATE_LIMITED, UNAVAILABLE */
    pass: (grant: Grant): Headers | Promise<Headers> => {
      const quota = grant.requestsPerMinute;
      if (quota === null) return {};
      const held = quota > maxExactQuota ? findLease(grant, quota) : null;
      return held === null ? passWithRedis(grant, quota) : consume(held, quota);
    },
  };
}
