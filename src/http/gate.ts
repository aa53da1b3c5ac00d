import { ApiError } from '../errors.js';
import type { Grant } from '../services/ports.js';
import type { Authenticator } from './auth.js';
import type { Exchange } from './exchange.js';
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
import type { Match, Reply, Route } from './routes.js';

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
    const grant = keyed ? await auth.authenticate(exchange.header('x-api-key')) : null;
    const route = routeOf(match);
    if (grant !== null) Object.assign(headers, await quota.pass(grant));
    checkScope(grant, route);
    return route.handle(await readCall(exchange, route, match, grant));
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

async function readCall(exchange: Exchange, route: Route, match: Match, grant: Grant | null) {
  const { body, mediaType } = await readBody(exchange, route);
  return {
    tenant: grant?.tenant ?? '',
    body,
    mediaType,
    parameters: match.parameters.map(decodeParameter),
    query: parseQuery(exchange.query, route.queryNames),
    idempotencyKey: route.body === null ? null : parseIdempotencyKey(exchange.header('idempotency-key')),
    ifMatch: replaces(route) ? parseIfMatch(exchange.header('if-match')) : null,
  };
}

const replaces = ({ method }: Route): boolean => method === 'PUT' || method === 'DELETE';

async function readBody(
  exchange: Exchange,
  { body: rules }: Route,
): Promise<{ body: Buffer; mediaType: string }> {
  if (rules === null) return { body: Buffer.alloc(0), mediaType: '' };
  const mediaType = checkMediaType(exchange.header('content-type'), rules);
  const encoding = checkEncoding(exchange.header('content-encoding'), rules);
  const received = await exchange.body();
  return { mediaType, body: encoding === 'gzip' ? await decompress(received, rules.limit) : received };
}
