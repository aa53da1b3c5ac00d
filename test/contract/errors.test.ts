/** Rows of the error table, and the order of the checks. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { learnerKey, partitionOf } from '../../src/store/redis/keys.js';
import { timeAgo } from '../support/builders/day.js';
import { assertDescribed } from '../support/http/answer-check.js';
import { callerOf, event, jsonOf, type RequestParts } from '../support/http/http.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';
import { valuesOf } from '../support/values-of.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const redis = await redisOf({ after }, service.redisUrl);
const caller = callerOf(service, service.key);
const stranger = callerOf(service, null);

interface Expected {
  readonly status: number;
  readonly code: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function assertRejected(parts: RequestParts, expected: Expected, key: string | null = service.key) {
  const response = await callerOf(service, key).raw(parts);
  const { method = 'POST', path = '/api/v1/track-answer' } = parts;
  assertDescribed(response, method, path);
  const json = jsonOf(response);
  const { success, error } = json;
  assert.deepEqual(
    [response.status, success, error.code, typeof error.message, 'data' in json],
    [expected.status, false, expected.code, 'string', false],
    response.text,
  );
  assert.match(response.headers['content-type'] ?? '', /^application\/json/);
  for (const [name, value] of Object.entries(expected.headers ?? {}))
    assert.equal(response.headers[name], value);
  return response;
}

const body = JSON.stringify(event());
const batch = '/api/v1/track-answers';
const unauthorized = { status: 401, code: 'UNAUTHORIZED', headers: { 'www-authenticate': 'ApiKey' } };
const forbidden = { status: 403, code: 'FORBIDDEN' };
const unknownUser = { status: 404, code: 'USER_NOT_FOUND' };
const notFound = { status: 404, code: 'NOT_FOUND' };
const invalid = { status: 400, code: 'INVALID_REQUEST' };
const unsupported = { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' };
const tooLarge = { status: 413, code: 'PAYLOAD_TOO_LARGE' };
const notAllowed = (allow: string) => ({ status: 405, code: 'METHOD_NOT_ALLOWED', headers: { allow } });

const gzipped = { 'Content-Encoding': 'gzip' };
const plain = { 'Content-Type': 'text/plain' };
const typed = (type: string | null): RequestParts => ({ body, headers: { 'Content-Type': type } });
const repeated = { 'Idempotency-Key': ['a', 'a'] };
const large = Buffer.alloc(20_000, 32);
const get = (path: string): RequestParts => ({ method: 'GET', path });

type Row = readonly [name: string, RequestParts, Expected, key?: string | null];

async function assertRows(rows: readonly Row[]): Promise<void> {
  for (const [name, parts, expected, key = service.key] of rows)
    await assertRejected(parts, expected, key).catch((error) => {
      throw new Error(name, { cause: error });
    });
}

test('The service returns 400, 401, 404, 405, 413 and 415 as in the error table', () =>
  assertRows([
    ['the body is not JSON', { body: '{' }, invalid],
    ['no key', { body }, unauthorized, null],
    ['an empty key', { body }, unauthorized, ''],
    ['an unknown key', { body }, unauthorized, 'unknown'],
    ['a key with one more character', { body }, unauthorized, `${service.key}x`],
    ['an unknown learner', get('/api/v1/mastery/unknown'), unknownUser],
    ['an unknown path', get('/api/v1/nothing'), notFound],
    ['an unknown path outside the API', get('/nothing'), notFound, null],
    ['the root', get('/'), notFound, null],
    ['the prefix', get('/api/v1'), notFound],
    ['a slash at the end', get('/api/v1/learners/'), notFound],
    ['a slash at the end without a key', get('/api/v1/learners/'), unauthorized, null],
    ['a slash at the end of health', get('/api/v1/health/'), notFound, null],
    ['another version', get('/api/v2/health'), notFound, null],
    ['GET of track-answer', { method: 'GET' }, notAllowed('POST')],
    ['POST of predictions', { path: '/api/v1/predictions/a', body }, notAllowed('GET, HEAD')],
    ['OPTIONS', { method: 'OPTIONS' }, notAllowed('POST')],
    ['OPTIONS of a probe', { method: 'OPTIONS', path: '/livez' }, notAllowed('GET, HEAD'), null],
    ['an unknown method', { method: 'BREW' }, notAllowed('POST')],
    ['a method in lower case', { method: 'post', body }, notAllowed('POST')],
    ['POST of health', { path: '/api/v1/health', body }, notAllowed('GET, HEAD'), null],
    ['an event over 16 KiB', { body: large }, tooLarge],
    ['no content type', typed(null), unsupported],
    ['a second charset', typed('application/json; charset=utf-8; charset=latin1'), unsupported],
    ['no body and no content type', {}, unsupported],
    ['another content type', typed('text/plain'), unsupported],
    ['another charset', typed('application/json; charset=latin1'), unsupported],
    ['NDJSON of one event', typed('application/x-ndjson'), unsupported],
    ['gzip of one event', { body, headers: gzipped }, unsupported],
    ['brotli of a batch', { path: batch, body, headers: { 'Content-Encoding': 'br' } }, unsupported],
  ]));

test('The service checks framing, key, path, method, quota, scope, type, size and body in this order', async () => {
  const reader = await keys.add({ scopes: ['read'] });
  const writer = await keys.add({ scopes: ['write'] });
  await assertRows([
    ['a repeated header without a key', { body, headers: repeated }, invalid, null],
    ['a repeated header outside the API', { path: '/x', body, headers: repeated }, invalid, null],
    ['an unknown path without a key', get('/api/v1/nothing'), unauthorized, null],
    ['a wrong method without a key', { method: 'PUT' }, unauthorized, null],
    ['a large body without a key', { body: large, headers: plain }, unauthorized, null],
    ['a wrong type at an unknown path', { path: '/api/v1/nothing', body, headers: plain }, notFound],
    ['an unknown method at an unknown path', { method: 'BREW', path: '/api/v1/x' }, notFound],
    ['a wrong method with a large body', { method: 'PUT', body: large }, notAllowed('POST')],
    ['a missing scope with a wrong type', { body, headers: plain }, forbidden, reader],
    ['a missing scope, large', { path: batch, body: large }, forbidden, reader],
    ['a missing scope for a learner', get('/api/v1/mastery/unknown'), forbidden, writer],
    ['a missing scope with a bad query', get('/api/v1/predictions/unknown?days=0'), forbidden, writer],
    ['a scope that suffices', get('/api/v1/mastery/unknown'), unknownUser, reader],
    ['a wrong type, large', { body: large, headers: plain }, unsupported],
    ['a wrong encoding, large', { body: large, headers: gzipped }, unsupported],
    ['a malformed path with a bad query', get('/api/v1/predictions/%?days=0'), invalid],
  ]);
  assert.equal((await callerOf(service, writer).track(event())).status, 200);
  const limited = await keys.add({ scopes: ['read'], quota: 1 });
  await assertRejected({ body }, forbidden, limited);
  const rateLimited = { status: 429, code: 'RATE_LIMITED' };
  const { headers } = await assertRejected({ body, headers: plain }, rateLimited, limited);
  assert.match(headers['retry-after'] ?? '', /^([1-9]|[1-5]\d|60)$/);
  assert.equal(headers['ratelimit-policy'], '"default";q=1;w=60');
  assert.match(headers.ratelimit ?? '', /^"default";r=0;t=([1-9]|[1-5]\d|60)$/);
  await assertRows([
    ['an unknown path above the quota', get('/api/v1/nothing'), notFound, limited],
    ['a wrong method above the quota', { method: 'PUT' }, notAllowed('POST'), limited],
  ]);
});

/** Overwrites the record of a learner with bytes that cannot be decoded. */
async function damage(user_id: string, record: 'field' | 'key'): Promise<void> {
  const key = learnerKey(partitionOf(service.tenant, user_id, 16), service.tenant, user_id);
  if (record === 'field') await redis.hset(key, 'L', 'zz');
  else await redis.set(key, 'zz');
}

/** Defects that the service has counted. */
async function countDefects(): Promise<number> {
  const { text } = await stranger.raw({ method: 'GET', path: '/metrics' });
  return Number(/^skilltrace_defects_total\{[^}]*\} (\d+)$/m.exec(text)?.[1]);
}

test('The service returns 500 without internals for a damaged learner', async () => {
  const user_id = 'damaged';
  await caller.track(event({ user_id }));
  await damage(user_id, 'field');
  const requests: readonly RequestParts[] = [
    { body: JSON.stringify(event({ user_id })) },
    get(`/api/v1/mastery/${user_id}`),
    get(`/api/v1/predictions/${user_id}`),
    { path: `/api/v1/predictions/${user_id}/what-if`, body: '{"answers_per_day":5}' },
    { path: `/api/v1/next-items/${user_id}`, body: '{"items":[{"skill_id":"s"}]}' },
  ];
  for (const parts of requests) {
    const { text } = await assertRejected(parts, { status: 500, code: 'INTERNAL' });
    assert.doesNotMatch(text, /format|record|redis|offset|\bat\b/i);
  }
});

test('The service serves the other learners of a request or batch with damaged ones', async () => {
  const user_ids = ['class-1', 'torn', 'class-2', 'unknown', 'no-hash', 'class-3'];
  for (const user_id of user_ids) if (user_id !== 'unknown') await caller.track(event({ user_id }));
  await damage('torn', 'field');
  await damage('no-hash', 'key');
  const defects = await countDefects();
  const { status, json } = await caller.send('POST', '/api/v1/predictions', { user_ids });
  const { found, missing, failed, results } = json.data;
  assert.deepEqual([status, found, missing, failed], [200, 3, 1, 2]);
  assert.deepEqual(
    results.map(({ error, ...result }: { status: number; error?: { code: string } }) =>
      error ? error.code : result.status,
    ),
    [200, 'INTERNAL', 200, 'USER_NOT_FOUND', 'INTERNAL', 200],
  );
  assert.doesNotMatch(JSON.stringify(results), /format|record(?!ed for)|redis|WRONGTYPE/i);
  assert.equal((await countDefects()) - defects, 2);
  // Concurrent reads share tasks of the forecast worker.
  const reads = await Promise.all(user_ids.map((user_id) => caller.get(`/api/v1/predictions/${user_id}`)));
  assert.deepEqual(valuesOf(reads, 'status'), [200, 500, 200, 404, 500, 200]);
  const tracked = await caller.trackAll(user_ids.map((user_id) => event({ user_id })));
  assert.equal(tracked.status, 207);
  assert.deepEqual(valuesOf(tracked.json.data.results, 'status'), [200, 500, 200, 200, 500, 200]);
});

test('X-Request-Id repeats a valid id of the request; otherwise it is a new id', async () => {
  const sendId = async (sent: string | null, path = '/livez') =>
    (await stranger.raw({ method: 'GET', path, headers: { 'X-Request-Id': sent } })).headers['x-request-id'];
  for (const valid of ['a', 'A-z.0_9:x', 'x'.repeat(128)]) assert.equal(await sendId(valid), valid);
  for (const bad of ['x'.repeat(129), 'a b', 'a/b', 'é', '', null]) {
    const id = await sendId(bad);
    assert.notEqual(id, bad);
    assert.match(id ?? '', /^[A-Za-z0-9._:-]{1,128}$/);
  }
  assert.equal(await sendId('mine', '/nothing'), 'mine');
  assert.notEqual(await sendId(null), await sendId(null));
});

test('Responses with data and errors of the API forbid caching', async () => {
  const user = event({ user_id: 'cached' });
  const sent: readonly RequestParts[] = [
    ...[
      { body: JSON.stringify(user) },
      { body: '{' },
      typed('text/plain'),
      { body: large },
      { method: 'PUT' },
    ],
    ...['mastery/cached', 'mastery/unknown', 'nothing', 'health', 'learners/cached/export', 'learners/'].map(
      (name) => get(`/api/v1/${name}`),
    ),
    ...[get('/xapi/about'), get('/xapi/statements'), get('/xapi/nothing'), get('/livez')],
  ];
  for (const parts of sent)
    for (const by of [caller, stranger])
      assert.equal((await by.raw(parts)).headers['cache-control'], 'no-store', JSON.stringify(parts));
  assert.equal((await stranger.raw(get('/openapi.json'))).headers['cache-control'], 'no-cache');
});

test('HEAD returns the status and headers of GET without a body', async () => {
  const path = '/api/v1/mastery/somebody';
  // Long ago: soon after an answer, expected accuracy changes between two reads.
  await caller.track(event({ user_id: 'somebody', occurred_at: timeAgo(300) }));
  for (const [target, key] of [
    [path, service.key],
    [path, null],
    ['/api/v1/mastery/unknown', service.key],
    ['/livez', null],
    ['/api/v1/nothing', service.key],
  ] as const) {
    const full = await callerOf(service, key).raw(get(target));
    const head = await callerOf(service, key).head(target);
    assert.deepEqual([head.status, head.text], [full.status, ''], target);
    // uWebSockets.js adds Date and its name to GET only.
    const { date: _, uwebsockets: __, ...headers } = full.headers;
    assert.deepEqual(Object.keys(head.headers).sort(), [...Object.keys(headers), 'connection'].sort());
    assert.equal(head.headers['content-length'], full.headers['content-length']);
  }
  assert.equal((await caller.head('/api/v1/track-answer')).status, 405);
});
