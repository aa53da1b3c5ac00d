import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { pathNotFound } from '../errors.js';
import { buildOpenapi } from './openapi.js';
import { type Reply, type Route, route } from './route.js';

/** Built by src/build.mjs; names contain content hashes. */
const folders = {
  docs: new URL('.', import.meta.resolve('#bundle/docs/index.html')),
  dashboard: new URL('.', import.meta.resolve('#bundle/dashboard/index.html')),
};

/** Swagger UI's style sheet needs `data:` icons. */
const policy = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:"],
  ...["connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');

const pageHeaders = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': policy,
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-cache',
};

export function withDescription(api: readonly Route[]): readonly Route[] {
  const described = memoize((): Reply => {
    const body = JSON.stringify(buildOpenapi(routes));
    const ETag = `W/"${hash('sha256', body).slice(0, 16)}"`;
    return { status: 200, body, headers: { 'Cache-Control': 'no-cache', ETag } };
  });
  const routes = [...api, route('GET /openapi.json', {}, described)];
  return routes;
}

const acceptsHtml = /(^|,)\s*text\/html\s*(,|;|$)/i;

export const createAllPageRoutes = (): readonly Route[] => [
  ...createPageRoutes('docs'),
  ...createPageRoutes('dashboard'),
  route('GET /', {}, ({ head }) => {
    if (!acceptsHtml.test(head.header('accept') ?? '')) throw pathNotFound('GET', '/');
    return { status: 302, body: '', headers: { Location: '/dashboard' } };
  }),
];

function createPageRoutes(name: keyof typeof folders): readonly Route[] {
  const folder = folders[name];
  const page = memoize(() => readFileSync(new URL('index.html', folder), 'utf8'));
  const files = memoize(
    () => new Map(readdirSync(folder).map((file) => [file, createFileReply(folder, file)])),
  );
  return [
    route(`GET /${name}`, {}, () => ({ status: 200, body: page(), headers: pageHeaders })),
    route(`GET /${name}/:file`, {}, (_, file) => files().get(`${file}.gz`) ?? throwNotFound(name, file)),
  ];
}

/** Always gzip: only browsers load these files. */
const createFileReply = (folder: URL, packed: string): Reply => ({
  status: 200,
  body: readFileSync(new URL(packed, folder)),
  headers: {
    'Content-Type': packed.endsWith('.css.gz') ? 'text/css' : 'text/javascript',
    'Content-Encoding': 'gzip',
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'public, max-age=31536000, immutable',
  },
});

function throwNotFound(name: string, file: string): never {
  throw pathNotFound('GET', `/${name}/${file}`);
}

function memoize<Value>(make: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= make();
    return value;
  };
}
