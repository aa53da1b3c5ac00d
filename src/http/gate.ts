import { BlockList, isIP, isIPv6 } from 'node:net';
import type { Grant } from '../contracts/access.js';
import { parseIfMatch } from '../contracts/preconditions.js';
import { ApiError } from '../errors.js';
import { type Authenticator, unauthorized } from './auth.js';
import { ClientGone, type Exchange, type Headers } from './exchange.js';
import type { QuotaGate } from './quota.js';
import {
  type Call,
  checkEncoding,
  checkMediaType,
  type Match,
  parseIdempotencyKey,
  type Reply,
  type Route,
} from './route.js';

/** What the checks of a request's head let pass. */
export interface Admitted {
  readonly route: Route;
  /** Null where the route asks for no key. */
  readonly grant: Grant | null;
  readonly mediaType: string;
  readonly gzip: boolean;
}

export type Gate = ReturnType<typeof createGate>;

export function createGate(auth: Authenticator, quota: QuotaGate) {
  /**
   * Takes the head of a request through all its checks, in the contract's order; at once unless Redis has to be asked for
   * the key or its quota.
   * @param headers gets those that belong to the answer whatever it will be
   * @throws ApiError
   */
  return (exchange: Exchange, match: Match, headers: Headers[]): Admitted | Promise<Admitted> => {
    if (exchange.framingProblem !== null) throw new ApiError('INVALID_REQUEST', exchange.framingProblem);
    if (match.keyless) return admit(exchange, routeOf(match), null);
    const found = auth.authenticate(exchange.header('x-api-key'));
    if (found instanceof Promise) return found.then((grant) => checkQuota(exchange, match, headers, grant));
    return checkQuota(exchange, match, headers, found);
  };

  function checkQuota(exchange: Exchange, match: Match, headers: Headers[], grant: Grant) {
    if (grant.development) checkLocal(exchange);
    const route = routeOf(match);
    const admitted = (more: Headers): Admitted => {
      headers.push(more);
      return admit(exchange, route, grant);
    };
    const passed = quota.pass(grant);
    return passed instanceof Promise ? passed.then(admitted) : admitted(passed);
  }
}

/** Whether a path's answers are in the envelope, and ask for a key. */
export const isApi = (path: string): boolean => path === '/api/v1' || path.startsWith('/api/v1/');

function routeOf({ route, allow }: Match): Route {
  if (route !== null) return route;
  if (allow === null) throw new ApiError('NOT_FOUND', 'There is nothing at this path');
  throw new ApiError('METHOD_NOT_ALLOWED', `This path takes ${allow}`, { headers: { Allow: allow } });
}

/** @throws ApiError */
function admit(exchange: Exchange, route: Route, grant: Grant | null): Admitted {
  const { scope } = route;
  if (grant !== null && scope !== null && !grant.scopes.includes(scope))
    throw new ApiError('FORBIDDEN', `The scope of this key does not allow it: it needs ${scope}`);
  if (route.body === null) return { route, grant, mediaType: '', gzip: false };
  const mediaType = checkMediaType(exchange.header('content-type'), route.body);
  const gzip = checkEncoding(exchange.header('content-encoding'), route.body) === 'gzip';
  return { route, grant, mediaType, gzip };
}

/** What the handler gets to see, with the last checks. @throws ApiError */
export function callOf(
  exchange: Exchange,
  { route, grant, mediaType }: Admitted,
  body: Buffer,
  respond: (reply: Reply) => void,
): Call {
  const replaces = route.method === 'PUT' || route.method === 'DELETE';
  return {
    tenant: grant?.tenant ?? '',
    body,
    mediaType,
    query: route.query?.read(exchange.query),
    idempotencyKey: route.body === null ? null : parseIdempotencyKey(exchange.header('idempotency-key')),
    ifMatch: replaces ? parseIfMatch(exchange.header('if-match')) : null,
    stillWanted: () => {
      if (exchange.done) throw new ClientGone();
    },
    respond,
  };
}

const loopback = new BlockList();
// Also as ::ffff:127.0.0.0/104, which the list takes for the same.
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether a host, without port and brackets, is the machine itself whatever its resolver says. */
export function isLoopbackHost(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === 'localhost';
  return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

const authority = /^(?:\[([\da-f:.]+)\]|([a-z\d.]+?)\.?)(?::\d{0,5})?$/i;

/** The same of a Host header. Of another name a page on the web may have said that it is this machine. */
export function isLoopbackAuthority(header: string): boolean {
  const [, literal, name] = authority.exec(header) ?? [];
  if (literal !== undefined) return isIPv6(literal) && isLoopbackHost(literal);
  return name !== undefined && isLoopbackHost(name);
}

/**
 * Lets a request with the development key pass that was made on this machine and went through no proxy.
 * @throws ApiError UNAUTHORIZED
 */
function checkLocal(exchange: Exchange): void {
  const isProxied = exchange.headerNames().some((name) => /^(forwarded$|via$|x-forwarded-)/.test(name));
  const isLocal = isLoopbackHost(exchange.peer()) && isLoopbackAuthority(exchange.header('host') ?? '');
  if (isLocal && !isProxied) return;
  throw unauthorized(
    'The development key works on the machine itself only, without a proxy: make another one with npm run keys -- create',
  );
}
