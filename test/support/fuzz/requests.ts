/** Requests generated from the table of routes: most are valid or nearly valid. */
import fc from 'fast-check';
import type { Route } from '../../../src/http/route.js';
import { styleFile } from '../http/route-requests.js';
import { routeTable } from '../http/route-table.js';
import { type Content, contentOf, strayContent } from './bodies.js';
import { eventId, mostly, pathSegment, validId } from './texts.js';

/** The test counts the answers of tenant `ledger`, so nothing is deleted there and its time zone stays. The other known keys belong to `wild`. */
export type KeyName = 'ledger' | 'wild' | 'reader' | 'writer' | 'operator' | 'poor' | 'unknown' | null;

export interface Request {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly key: KeyName;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly content: Content | null;
}

/** Placeholders in paths for the newest id or cursor that the service has returned. */
export const placeholders = {
  erasure: '~erasure~',
  webhook: '~webhook~',
  message: '~message~',
  key: '~key~',
  cursor: '~cursor~',
  /** Replaces the learner in the path as well. */
  event: '~event~',
} as const;

const { erasure, webhook, message, key, cursor, event } = placeholders;
/** The others are learners and skills. */
const pathIds: Readonly<Record<string, fc.Arbitrary<string>>> = {
  ':event_id': fc.oneof(eventId.map(encodeURIComponent), fc.constant(event)),
  ':erasure_id': fc.constant(erasure),
  ':webhook_id': fc.constant(webhook),
  ':message_id': fc.constant(message),
  ':key_id': fc.constant(key),
  ':version': fc.constantFrom('0', '1'),
  ':file': fc.constantFrom(`${styleFile('docs')}`, `${styleFile('dashboard')}`),
};

const segmentOf = (part: string): fc.Arbitrary<string> => {
  if (!part.startsWith(':')) return fc.constant(part);
  const ids = pathIds[part];
  return ids === undefined ? pathSegment : mostly(4, ids, pathSegment);
};

const join = (parts: readonly string[]): string => parts.join('/');

const unknownPath = fc
  .tuple(fc.constantFrom('', '/api/v1'), fc.array(pathSegment, { maxLength: 5 }))
  .map(([begin, parts]) => `${begin}/${join(parts)}`);

const pathOf = ({ path }: Route): fc.Arbitrary<string> => {
  const usual = fc.tuple(...path.split('/').map(segmentOf)).map(join);
  return mostly(10, usual, unknownPath);
};

const queryValue = fc.oneof(
  fc.integer({ min: 1, max: 60 }).map(String),
  fc.constantFrom('0.8', '0.99', 'true', 'false', 'en', 'YWZ0ZXI6YQ'),
  fc.constantFrom('', '0', '-1', '1e3', 'NaN', '99999999999999999999', '%', '%00', '%ff', '1&days=2'),
  validId.map(encodeURIComponent),
);

const queryOf = ({ query }: Route): fc.Arbitrary<string> => {
  const names = query?.names ?? [];
  // The live stream ends after so many events.
  if (names.includes('events')) return fc.constantFrom('events=1', 'events=2');
  const pair = fc
    .tuple(fc.constantFrom(...names, 'unknown', '__proto__', 'constructor'), queryValue)
    .map((parts) => parts.join('='));
  const any = fc.array(pair, { maxLength: 3 }).map((pairs) => pairs.join('&'));
  if (names.includes('cursor'))
    return fc.oneof(any, fc.constantFrom(...[1, 2, 3].map((limit) => `limit=${limit}&cursor=${cursor}`)));
  if (names.includes('statementId'))
    return fc.oneof(any, fc.constant('statementId=5b2c0d6e-6a38-4a53-9d70-6ee1e0d2b4a5'));
  return any;
};

const headerText = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,140}[\x21-\x7e])?$/);

const headers: fc.Arbitrary<Record<string, string | readonly string[]>> = fc.record(
  {
    'X-Request-Id': fc.oneof(headerText, fc.stringMatching(/^[A-Za-z0-9._:-]{1,128}$/)),
    'Idempotency-Key': fc.oneof(
      headerText,
      fc.constantFrom('a', '"b"', '"', '""', 'k-1'),
      fc.constant(['a', 'b']),
    ),
    'If-Match': fc.oneof(headerText, fc.constantFrom('*', '"1"', 'W/"1"', '"1", "2"', '"', ',')),
    'Accept-Encoding': fc.constantFrom('gzip', 'identity;q=0, *;q=0'),
    Accept: fc.constantFrom('text/html', '*/*;q=0'),
    Range: fc.constant('bytes=0-1'),
    Origin: fc.constant('http://evil.example'),
    'X-Forwarded-For': fc.constant('127.0.0.1'),
    'X-HTTP-Method-Override': fc.constant('DELETE'),
    'If-None-Match': fc.constant('*'),
    Upgrade: fc.constant('h2c'),
    Cookie: headerText,
  },
  { requiredKeys: [] },
);

const keys: fc.Arbitrary<KeyName> = fc.oneof(
  { weight: 16, arbitrary: fc.constant<KeyName>('ledger') },
  { weight: 6, arbitrary: fc.constant<KeyName>('wild') },
  { weight: 3, arbitrary: fc.constantFrom<KeyName>('reader', 'writer', 'poor', 'unknown', null) },
);

/** The ledger does not read xAPI statements, so those go to the other tenant. A change of the time zone cuts exports. */
function replaceKey({ path, protocol, scope }: Route, method: string): KeyName {
  if (scope === 'operator') return 'operator';
  const changesZone = method === 'PUT' && path.endsWith('/settings');
  return method === 'DELETE' || protocol || changesZone ? 'wild' : 'ledger';
}

const methods = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'BREW');
const noContent = fc.constant(null);

const requestTo = (route: Route): fc.Arbitrary<Request> =>
  fc
    .record({
      method: mostly(15, fc.constant<string>(route.method), methods),
      path: pathOf(route),
      query: queryOf(route),
      key: keys,
      headers: fc.oneof(fc.constant({}), headers),
      content:
        route.body === null
          ? mostly<Content | null>(15, noContent, strayContent)
          : mostly<Content | null>(30, contentOf(route), noContent),
    })
    .map(({ query, path, key, headers, method, content }) => ({
      method,
      content,
      key: key === 'ledger' ? replaceKey(route, method) : key,
      headers: route.protocol ? { 'X-Experience-API-Version': '1.0.3', ...headers } : headers,
      path: query === '' ? path : `${path}?${query}`,
    }));

/** Rare: retractions occupy a partition for seconds, other webhook calls need a webhook, and an export reads every table. */
const weightOf = ({ method, path }: Route): number => {
  if (method === 'DELETE' && /\/(attempts|webhooks)\//.test(path)) return 1;
  return path.endsWith('/export') ? 2 : 10;
};

export const request: fc.Arbitrary<Request> = fc.oneof(
  ...routeTable.map((route) => ({ weight: weightOf(route), arbitrary: requestTo(route) })),
);
