/** Every row of the error table that can occur, and the order of the checks that decide between them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { learnerKey, metaKey, partitionOf } from '../../src/store/redis/keys.js';
import { assertAnswer } from '../support/http/answer-check.js';
import { callerOf, event, jsonOf, type RequestParts } from '../support/http/http.js';
import { targetOf } from '../support/http/route-table.js';
import { keysOf, redisOf, sharedService } from '../support/servers/service.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const caller = callerOf(service, service.key);
const stranger = callerOf(service, null);

interface Expected {
  readonly status: number;
  readonly code: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function refused(parts: RequestParts, expected: Expected, key: string | null = service.key) {
  const answer = await callerOf(service, key).raw(parts);
  const { method = 'POST', path = '/api/v1/track-answer' } = parts;
  assertAnswer(answer, { method, target: targetOf(method, path.split('?')[0] ?? ''), requestId: null });
  const json = jsonOf(answer);
  assert.equal(answer.status, expected.status, answer.text);
  assert.equal(json.success, false);
  assert.equal(json.error.code, expected.code);
  assert.equal(typeof json.error.message, 'string');
  assert.equal('data' in json, false);
  assert.match(answer.headers['x-request-id'] ?? '', /^[A-Za-z0-9._:-]{1,128}$/);
  assert.match(answer.headers['content-type'] ?? '', /^application\/json/);
  for (const [name, value] of Object.entries(expected.headers ?? {}))
    assert.equal(answer.headers[name], value);
  return answer;
}

const body = JSON.stringify(event());
const unauthorized = { status: 401, code: 'UNAUTHORIZED', headers: { 'www-authenticate': 'ApiKey' } };
const notFound = { status: 404, code: 'NOT_FOUND' };
const invalid = { status: 400, code: 'INVALID_REQUEST' };
const unsupported = { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' };
const tooLarge = { status: 413, code: 'PAYLOAD_TOO_LARGE' };
const notAllowed = (allow: string) => ({ status: 405, code: 'METHOD_NOT_ALLOWED', headers: { allow } });

const gzipped = { 'Content-Encoding': 'gzip' };
const plain = { 'Content-Type': 'text/plain' };
const large = Buffer.alloc(20_000, 32);

const rows: readonly (readonly [string, RequestParts, Expected, (string | null)?])[] = [
  ['body is not JSON', { body: '{' }, invalid],
  ['no key', { body }, unauthorized, null],
  ['an empty key', { body }, unauthorized, ''],
  ['an unknown key', { body }, unauthorized, 'nobody'],
  ['a key that differs in its end', { body }, unauthorized, `${service.key}x`],
  [
    'unknown learner',
    { method: 'GET', path: '/api/v1/mastery/nobody' },
    { status: 404, code: 'USER_NOT_FOUND' },
  ],
  ['unknown path', { method: 'GET', path: '/api/v1/nothing' }, notFound],
  ['unknown path outside the API', { method: 'GET', path: '/nothing' }, notFound, null],
  ['the root', { method: 'GET', path: '/' }, notFound, null],
  ['the prefix alone', { method: 'GET', path: '/api/v1' }, notFound],
  ['another version', { method: 'GET', path: '/api/v2/health' }, notFound, null],
  ['GET on track-answer', { method: 'GET' }, notAllowed('POST')],
  ['POST with a body on predictions', { path: '/api/v1/predictions/a', body }, notAllowed('GET, HEAD')],
  ['OPTIONS', { method: 'OPTIONS' }, notAllowed('POST')],
  ['OPTIONS on a probe', { method: 'OPTIONS', path: '/livez' }, notAllowed('GET, HEAD'), null],
  ['an invented method', { method: 'BREW' }, notAllowed('POST')],
  ['a method in lower case', { method: 'post', body }, notAllowed('POST')],
  ['POST on health without key', { path: '/api/v1/health', body }, notAllowed('GET, HEAD'), null],
  ['an invented method on an unknown path', { method: 'BREW', path: '/api/v1/x' }, notFound],
  ['single event over 16 KiB', { body: large }, tooLarge],
  ['no content type', { body, headers: { 'Content-Type': null } }, unsupported],
  ['neither body nor content type', {}, unsupported],
  ['another content type', { body, headers: plain }, unsupported],
  ['another charset', { body, headers: { 'Content-Type': 'application/json; charset=latin1' } }, unsupported],
  ['NDJSON on the single', { body, headers: { 'Content-Type': 'application/x-ndjson' } }, unsupported],
  ['gzip on the single', { body, headers: gzipped }, unsupported],
  [
    'brotli on the batch',
    { path: '/api/v1/track-answers', body, headers: { 'Content-Encoding': 'br' } },
    unsupported,
  ],
  // The order of checks: each request has two faults, and the earlier check speaks.
  ['repeated header, no key', { body, headers: { 'Idempotency-Key': ['a', 'a'] } }, invalid, null],
  [
    'repeated header outside the API',
    { path: '/x', body, headers: { 'Idempotency-Key': ['a', 'a'] } },
    invalid,
    null,
  ],
  ['no key, unknown path', { method: 'GET', path: '/api/v1/nothing' }, unauthorized, null],
  ['no key, method not allowed', { method: 'PUT' }, unauthorized, null],
  ['no key, bad type, too large', { body: large, headers: plain }, unauthorized, null],
  ['unknown path, bad type', { path: '/api/v1/nothing', body, headers: plain }, notFound],
  ['method not allowed, too large', { method: 'PUT', body: large }, notAllowed('POST')],
  ['bad type, too large', { body: large, headers: plain }, unsupported],
  ['bad encoding, too large', { body: large, headers: gzipped }, unsupported],
  ['bad key in the path and a bad query', { method: 'GET', path: '/api/v1/predictions/%?days=0' }, invalid],
];

for (const [name, parts, expected, key = service.key] of rows) {
  test(`${name}: ${expected.status}`, async () => {
    await refused(parts, expected, key);
  });
}

test('403 for a key whose scopes do not allow it, before the content type is looked at', async () => {
  const reader = await keys.add({ scopes: ['read'] });
  const writer = await keys.add({ scopes: ['write'] });
  const forbidden = { status: 403, code: 'FORBIDDEN' };
  await refused({ body, headers: plain }, forbidden, reader);
  await refused({ path: '/api/v1/track-answers', body: large }, forbidden, reader);
  await refused({ method: 'GET', path: '/api/v1/mastery/nobody' }, forbidden, writer);
  await refused({ method: 'GET', path: '/api/v1/predictions/nobody?days=0' }, forbidden, writer);
  await refused(
    { method: 'GET', path: '/api/v1/mastery/nobody' },
    { status: 404, code: 'USER_NOT_FOUND' },
    reader,
  );
  assert.equal((await callerOf(service, writer).track(event())).status, 200);
});

test('429 with Retry-After comes before the scope, and after path and method', async () => {
  const key = await keys.add({ scopes: ['read'], quota: 1 });
  await refused({ body }, { status: 403, code: 'FORBIDDEN' }, key);
  const answer = await refused({ body, headers: plain }, { status: 429, code: 'RATE_LIMITED' }, key);
  assert.match(answer.headers['retry-after'] ?? '', /^([1-9]|[1-5]\d|60)$/);
  assert.equal(answer.headers['ratelimit-policy'], '"default";q=1;w=60');
  assert.match(answer.headers.ratelimit ?? '', /^"default";r=0;t=([1-9]|[1-5]\d|60)$/);
  await refused({ method: 'GET', path: '/api/v1/nothing' }, notFound, key);
  await refused({ method: 'PUT' }, notAllowed('POST'), key);
});

test('422 for the same event_id with a different event', async () => {
  const first = event({ event_id: 'e-1' });
  assert.equal((await caller.track(first)).status, 200);
  const changed = JSON.stringify({ ...first, is_correct: false });
  await refused({ body: changed }, { status: 422, code: 'IDEMPOTENCY_KEY_REUSED' });
});

test('500 for a defect: no internals in the message, and others are served', async () => {
  const user_id = 'damaged';
  await caller.track(event({ user_id }));
  await (await damage(user_id)).hset('L', 'zz');
  const parts: readonly RequestParts[] = [
    { body: JSON.stringify(event({ user_id })) },
    { method: 'GET', path: `/api/v1/mastery/${user_id}` },
    { method: 'GET', path: `/api/v1/predictions/${user_id}` },
    { path: `/api/v1/predictions/${user_id}/what-if`, body: '{"answers_per_day":5}' },
    { path: `/api/v1/next-items/${user_id}`, body: '{"items":[{"skill_id":"s"}]}' },
  ];
  for (const each of parts) {
    const { text } = await refused(each, { status: 500, code: 'INTERNAL' });
    assert.doesNotMatch(text, /format|record|redis|offset|\bat\b/i);
  }
  const batch = await caller.trackAll([event({ user_id }), ...Array.from({ length: 50 }, () => event())]);
  assert.deepEqual([batch.status, batch.json.data.accepted], [207, 50], 'it stops no other learner');
  const [damaged] = batch.json.data.results;
  assert.deepEqual([damaged.status, damaged.error.code], [500, 'INTERNAL']);
});

test('500 for the learners of a class whose records cannot be read, and the others are served', async () => {
  const user_ids = ['class-1', 'torn', 'class-2', 'nobody-here', 'no-hash', 'class-3'];
  for (const user_id of user_ids) if (user_id !== 'nobody-here') await caller.track(event({ user_id }));
  await (await damage('torn')).hset('L', 'zz');
  await (await damage('no-hash')).replace('zz');
  const before = await defects();
  const { status, json } = await caller.call({
    path: '/api/v1/predictions',
    body: JSON.stringify({ user_ids }),
  });
  assert.equal(status, 200);
  const { found, missing, failed, results } = json.data;
  assert.deepEqual([found, missing, failed], [3, 1, 2]);
  assert.deepEqual(
    results.map(
      (result: { status: number; error?: { code: string } }) => result.error?.code ?? result.status,
    ),
    [200, 'INTERNAL', 200, 'USER_NOT_FOUND', 'INTERNAL', 200],
  );
  assert.doesNotMatch(JSON.stringify(results), /format|record|redis|WRONGTYPE/i);
  assert.equal((await defects()) - before, 2);
  // At once, so that they share tasks of the forecast worker.
  const asked = await Promise.all(user_ids.map((user_id) => caller.get(`/api/v1/predictions/${user_id}`)));
  assert.deepEqual(
    asked.map((answer) => answer.status),
    [200, 500, 200, 404, 500, 200],
  );
  const batch = await caller.trackAll(user_ids.map((user_id) => event({ user_id })));
  assert.deepEqual(
    batch.json.data.results.map((result: { status: number }) => result.status),
    [200, 500, 200, 200, 500, 200],
  );
});

/** Changes the record of a learner behind the service's back. */
async function damage(user_id: string) {
  const redis = await redisOf({ after }, service.redisUrl);
  const partitions = Number(await redis.hget(metaKey, 'partitions'));
  const key = learnerKey(partitionOf(service.tenant, user_id, partitions), service.tenant, user_id);
  return {
    hset: (field: string, value: string) => redis.hset(key, field, value),
    replace: (value: string) => redis.set(key, value),
  };
}

/** Of all requests that this service has answered. */
async function defects(): Promise<number> {
  const { text } = await stranger.raw({ method: 'GET', path: '/metrics' });
  return Number(/^skilltrace_defects_total\{[^}]*\} (\d+)$/m.exec(text)?.[1]);
}

test('error messages carry no internals and details say where', async () => {
  const { json } = await caller.track({ user_id: 'a', skill_id: 7, confidence_score: 9 });
  const paths = json.error.details.map(({ path }: { path: string }) => path).sort();
  assert.deepEqual(paths, ['confidence_score', 'is_correct', 'skill_id']);
  for (const { message } of json.error.details) assert.equal(typeof message, 'string');
});

test('X-Request-Id: a plain one comes back, any other is replaced', async () => {
  const idOf = async (sent: string | null, path = '/livez') =>
    (await stranger.raw({ method: 'GET', path, headers: { 'X-Request-Id': sent } })).headers['x-request-id'];
  for (const plainId of ['a', 'A-z.0_9:x', 'x'.repeat(128)]) assert.equal(await idOf(plainId), plainId);
  for (const bad of ['x'.repeat(129), 'a b', 'a/b', 'é', '', null]) {
    const id = await idOf(bad);
    assert.notEqual(id, bad);
    assert.match(id ?? '', /^[A-Za-z0-9._:-]{1,128}$/);
  }
  assert.equal(await idOf('mine', '/nothing'), 'mine');
  assert.notEqual(await idOf(null), await idOf(null));
});

test('HEAD answers as GET without a body', async () => {
  const path = '/api/v1/mastery/somebody';
  // So long ago that no figure changes between two reads. Soon after an answer, expected accuracy does.
  const occurred_at = new Date(Date.now() - 300 * 86_400_000).toISOString();
  await caller.track(event({ user_id: 'somebody', occurred_at }));
  for (const [target, key] of [
    [path, service.key],
    [path, null],
    ['/api/v1/mastery/nobody', service.key],
    ['/livez', null],
    ['/api/v1/nothing', service.key],
  ] as const) {
    const get = await callerOf(service, key).raw({ method: 'GET', path: target });
    const head = await callerOf(service, key).head(target);
    assert.equal(head.status, get.status, target);
    assert.equal(head.text, '');
    // Date and the name of the server are uWebSockets.js's own.
    const { date: _, uwebsockets: __, ...own } = get.headers;
    assert.deepEqual(Object.keys(head.headers).sort(), [...Object.keys(own), 'connection'].sort());
    assert.equal(head.headers['content-length'], get.headers['content-length']);
  }
  const refusal = await caller.head('/api/v1/track-answer');
  assert.equal(refusal.status, 405);
});
