import { ApiError } from '../errors.js';
import type { Grant } from '../services/ports.js';
import type { Authenticator } from './auth.js';
import { ClientGone, type Exchange } from './exchange.js';
import { checkLocal } from './loopback.js';
import {
  checkEncoding,
  checkMediaType,
  decodeParameter,
  decompress,
  parseIdempotencyKey,
  parseQuery,
} from './parse.js';
import { parseIfMatch } from './preconditions.js';
import type { QuotaGate } from './quota.js';
import type { Call, Match, Reply, Route } from './routes.js';

/**
 * Takes a request through all checks, in the contract's order, to its handler.
 * @param headers filled with headers that belong to the answer whatever it will be
 * @throws ApiError, ClientGone
 */
export type Gate = (exchange: Exchange, match: Match, headers: Record<string, string>) => Promise<Reply>;

export function createGate(auth: Authenticator, quota: QuotaGate): Gate {
  return async (exchange, match, headers) => {
    if (exchange.framingProblem !== null) throw new ApiError('INVALID_REQUEST', exchange.framingProblem);
    const keyed = isApi(exchange.path) && !match.keyless;
    const found = keyed ? auth.authenticate(exchange.header('x-api-key')) : null;
    const grant = found instanceof Promise ? await found : found;
    if (grant?.development) checkLocal(exchange);
    const route = routeOf(match);
    if (grant !== null) {
      const passed = quota.pass(grant);
      Object.assign(headers, passed instanceof Promise ? await passed : passed);
    }
    checkScope(grant, route);
    const head = readHead(exchange, route);
    const received = route.body === null ? noBody : await exchange.body();
    const body = head.gzip ? await decompress(received, limitOf(route)) : received;
    return route.handle(callOf(exchange, route, match, grant, head.mediaType, body));
  };
}

const isApi = (path: string): boolean => path === '/api/v1' || path.startsWith('/api/v1/');

function routeOf({ route, allow }: Match): Route {
  if (route !== null) return route;
  if (allow === null) throw new ApiError('NOT_FOUND', 'There is nothing at this path');
  throw new ApiError('METHOD_NOT_ALLOWED', `This path takes ${allow}`, { headers: { Allow: allow } });
}

function checkScope(grant: Grant | null, { scope }: Route): void {
  if (grant === null || scope === null || grant.scopes.includes(scope)) return;
  throw new ApiError('FORBIDDEN', `The scope of this key does not allow it: it needs ${scope}`);
}

function callOf(
  exchange: Exchange,
  route: Route,
  match: Match,
  grant: Grant | null,
  mediaType: string,
  body: Buffer,
): Call {
  return {
    tenant: grant?.tenant ?? '',
    body,
    mediaType,
    parameters: match.parameters.map(decodeParameter),
    query: parseQuery(exchange.query, route.queryNames),
    idempotencyKey: route.body === null ? null : parseIdempotencyKey(exchange.header('idempotency-key')),
    ifMatch: replaces(route) ? parseIfMatch(exchange.header('if-match')) : null,
    stillWanted: () => {
      if (exchange.gone()) throw new ClientGone();
    },
  };
}

const replaces = ({ method }: Route): boolean => method === 'PUT' || method === 'DELETE';

const noBody = Buffer.alloc(0);
const limitOf = ({ body }: Route): number => body?.limit ?? 0;

/** What the body is said to be. @throws ApiError UNSUPPORTED_MEDIA_TYPE */
function readHead(exchange: Exchange, { body: rules }: Route): { mediaType: string; gzip: boolean } {
  if (rules === null) return { mediaType: '', gzip: false };
  const mediaType = checkMediaType(exchange.header('content-type'), rules);
  return { mediaType, gzip: checkEncoding(exchange.header('content-encoding'), rules) === 'gzip' };
}
