/** The description of the API, the page that shows it, and the way there. */
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { ApiError } from '../errors.js';
import { openapiOf } from './openapi.js';
import { type Reply, type Route, route } from './route.js';

/** What src/build.mjs made of src/pages: the page, and its files under their contents' hashes, packed with gzip. */
const folder = new URL('.', import.meta.resolve('#bundle/docs/index.html'));

const headers = { 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' };
/**
 * Nothing from elsewhere, and no page around it. `data:` images are icons in the style sheet of Swagger UI. It sets styles on
 * elements by script, which no policy forbids.
 */
const policy = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:"],
  ...["connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');
const types: Readonly<Record<string, string>> = { js: 'text/javascript', css: 'text/css' };

/** @returns the routes with those of the page behind them */
export function withPages(api: readonly Route[]): readonly Route[] {
  const described = once((): Reply => {
    const body = JSON.stringify(openapiOf(routes));
    const ETag = `"${hash('sha256', body).slice(0, 16)}"`;
    return { status: 200, body, headers: { 'Cache-Control': 'no-cache', ETag } };
  });
  const page = once((): Reply => {
    const more = { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': policy };
    const body = readFileSync(new URL('index.html', folder), 'utf8');
    return { status: 200, body, headers: { ...headers, ...more, 'Cache-Control': 'no-cache' } };
  });
  const files = once(() => new Map(readdirSync(folder).map((name) => [name, once(() => fileReply(name))])));
  const routes: readonly Route[] = [
    ...api,
    route('GET', '/openapi.json', {}, described),
    route('GET', '/docs', {}, page),
    route('GET', '/docs/:file', {}, (_, name) => (files().get(`${name}.gz`) ?? notFound)()),
    route('GET', '/', {}, ({ head }) =>
      head.header('accept')?.includes('text/html')
        ? { status: 302, body: '', headers: { Location: '/docs' } }
        : notFound(),
    ),
  ];
  return routes;
}

function fileReply(packed: string): Reply {
  const type = types[/(\w+)\.gz$/.exec(packed)?.[1] ?? ''] ?? 'text/plain';
  const ofFile = {
    'Content-Type': `${type}; charset=utf-8`,
    'Content-Encoding': 'gzip',
    'Cache-Control': 'public, max-age=31536000, immutable',
  };
  return { status: 200, body: readFileSync(new URL(packed, folder)), headers: { ...headers, ...ofFile } };
}

function notFound(): never {
  throw new ApiError('NOT_FOUND', 'There is nothing at this path');
}

/** Made when it is first asked for. */
function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
