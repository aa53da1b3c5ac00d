/** Requests made from the table of routes: fitting, nearly fitting, and hopeless ones. */
import fc from 'fast-check';
import type { Route } from '../../../src/http/route.js';
import { styleFile } from '../http/route-requests.js';
import { routeTable } from '../http/route-table.js';
import { type Content, contentFor } from './bodies.js';
import { toldCursor, toldErasure, toldEvent, toldKey, toldMessage, toldWebhook } from './memory.js';
import { badId, eventId, goodId, segment } from './texts.js';

/** Which of the tests' keys a request comes with; null: none. */
export type KeyName = 'ledger' | 'wild' | 'reader' | 'writer' | 'operator' | 'poor' | 'unknown' | null;

export interface Request {
  readonly method: string;
  /** With its query, as it is sent. */
  readonly path: string;
  readonly key: KeyName;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly content: Content | null;
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'BREW'];

const methodOf = (route: Route): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 15, arbitrary: fc.constant<string>(route.method) },
    { weight: 1, arbitrary: fc.constantFrom(...methods) },
  );

/** Ids that may well be there: of what is named otherwise than learners and skills. */
const idsOf: Readonly<Record<string, fc.Arbitrary<string>>> = {
  ':event_id': mostly(fc.oneof(eventId.map(encodeURIComponent), fc.constant(toldEvent))),
  ':erasure_id': mostly(fc.constant(toldErasure)),
  ':webhook_id': mostly(fc.constant(toldWebhook)),
  ':message_id': mostly(fc.constant(toldMessage)),
  ':key_id': mostly(fc.constant(toldKey)),
  ':version': mostly(fc.constantFrom('0', '1')),
  ':file': mostly(fc.constantFrom(`${styleFile('docs')}`, `${styleFile('dashboard')}`)),
};

function mostly(usual: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.oneof({ weight: 4, arbitrary: usual }, { weight: 1, arbitrary: segment });
}

const pathOf = (route: Route): fc.Arbitrary<string> => {
  const segments = route.path
    .split('/')
    .map((part) => (part.startsWith(':') ? (idsOf[part] ?? segment) : fc.constant(part)));
  return fc.oneof(
    { weight: 20, arbitrary: fc.tuple(...segments).map((parts) => parts.join('/')) },
    {
      weight: 1,
      arbitrary: fc.array(segment, { maxLength: 5 }).map((parts) => `/api/v1/${parts.join('/')}`),
    },
    { weight: 1, arbitrary: fc.array(segment, { maxLength: 3 }).map((parts) => `/${parts.join('/')}`) },
  );
};

const queryValue = fc.oneof(
  fc.integer({ min: 1, max: 60 }).map(String),
  fc.constantFrom(
    '0.8',
    '0.99',
    'true',
    'false',
    'en',
    'YWZ0ZXI6YQ',
    '',
    '0',
    '-1',
    '1e3',
    'NaN',
    '99999999999999999999',
    '%',
    '%00',
    '%ff',
    '1&days=2',
  ),
  goodId.map(encodeURIComponent),
);

const queryOf = ({ query }: Route): fc.Arbitrary<string> => {
  const queryNames = query?.names ?? [];
  // A stream that ends.
  if (queryNames.includes('events')) return fc.constantFrom('events=1', 'events=2');
  const name = fc.constantFrom(...queryNames, 'unknown', '__proto__', 'constructor');
  const odd = fc.array(fc.tuple(name, queryValue), { maxLength: 3 });
  const pages = fc.integer({ min: 1, max: 3 }).map((limit) => [
    ['limit', `${limit}`],
    ['cursor', toldCursor],
  ]);
  const statement = fc.constant([['statementId', '5b2c0d6e-6a38-4a53-9d70-6ee1e0d2b4a5']]);
  const usual = queryNames.includes('cursor') ? pages : statement;
  const isOdd = !queryNames.includes('cursor') && !queryNames.includes('statementId');
  return (isOdd ? odd : fc.oneof(odd, usual)).map((pairs) =>
    pairs.map(([left, right]) => `${left}=${right}`).join('&'),
  );
};

const headerText = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,140}[\x21-\x7e])?$/);

/** Headers that mean something, and some that must not. */
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

/** Half of the requests have none of these. */
const someHeaders = fc.oneof(fc.constant({}), headers);

const keys: fc.Arbitrary<KeyName> = fc.oneof(
  { weight: 16, arbitrary: fc.constant<KeyName>('ledger') },
  { weight: 6, arbitrary: fc.constant<KeyName>('wild') },
  { weight: 3, arbitrary: fc.constantFrom<KeyName>('reader', 'writer', 'poor', 'unknown', null) },
);

/** A body where none belongs. */
const strayContent: fc.Arbitrary<Content> = badId.map((id) => ({
  bytes: Buffer.from(id),
  type: 'application/json',
  encoding: null,
}));

const contentOf = (route: Route): fc.Arbitrary<Content | null> =>
  route.body === null
    ? fc.oneof({ weight: 15, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: strayContent })
    : fc.option(contentFor(route), { nil: null, freq: 30 });

/** Statements are learners' answers that no ledger has, and nothing of the ledger's is deleted. */
function keyFor({ protocol, scope }: Route, method: string): KeyName {
  if (scope === 'operator') return 'operator';
  return method === 'DELETE' || protocol ? 'wild' : 'ledger';
}

const requestTo = (route: Route): fc.Arbitrary<Request> =>
  fc
    .record({
      method: methodOf(route),
      path: pathOf(route),
      query: queryOf(route),
      key: keys,
      headers: someHeaders,
      content: contentOf(route),
    })
    .map(({ query, path, key, headers, ...rest }) => ({
      ...rest,
      key: key === 'ledger' ? keyFor(route, rest.method) : key,
      headers: route.protocol ? { 'X-Experience-API-Version': '1.0.3', ...headers } : headers,
      path: query === '' ? path : `${path}?${query}`,
    }));

/**
 * Asked for less often: an answer that is taken back holds up its partition for seconds, one after the other, without webhooks
 * most of their routes have nothing to do, and an export reads every table.
 */
const weightOf = ({ method, path }: Route): number => {
  if (method === 'DELETE' && /\/(attempts|webhooks)\//.test(path)) return 1;
  return path.endsWith('/export') ? 2 : 10;
};

/** Every other route as often as the others. */
export const request: fc.Arbitrary<Request> = fc.oneof(
  ...routeTable.map((route) => ({ weight: weightOf(route), arbitrary: requestTo(route) })),
);
