/** Gzip of large JSON responses: negotiation, HEAD, limits, and clients that disconnect. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type OutgoingHttpHeaders, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { ApiError } from '../../src/errors.js';
import { createErrorReply } from '../../src/http/replies.js';
import type { Reply } from '../../src/http/route.js';
import { exchangeRaw, openWire, rawRequest } from '../support/http/http.js';
import { startRoutes } from '../support/http/route-server.js';
import { waitFor } from '../support/wait.js';

/** Sends a request without a default Accept-Encoding. @returns the body as received */
async function fetchRaw(port: number, path: string, headers: OutgoingHttpHeaders = {}, method = 'GET') {
  const sent = request({ port, path, method, headers, agent: false });
  sent.end();
  const [response] = await once(sent, 'response');
  const { statusCode: status, headers: received } = response;
  return { status, headers: received, body: await buffer(response) };
}

const gzip = { 'Accept-Encoding': 'gzip' };
const json = (chars: number): string => JSON.stringify('é1'.repeat(chars / 2 - 1));
const large = json(40_000);

async function startBodies(t: TestContext, more: Record<string, () => Reply> = {}) {
  const { port } = await startRoutes(t, {
    '/large': () => ({ status: 200, body: large }),
    '/limit': () => ({ status: 200, body: json(8192) }),
    ...more,
  });
  return port;
}

const negotiated: Record<string, string | undefined> = {
  gzip: 'gzip',
  'gzip, deflate, br': 'gzip',
  GZIP: 'gzip',
  'x-gzip': 'gzip',
  '*': 'gzip',
  'br;q=1.0, gzip;q=0.8, *;q=0.1': 'gzip',
  ' gzip ; q=0.001': 'gzip',
  'identity;q=0.5, gzip;q=0.5': 'gzip',
  'gzip;q=0': undefined,
  'gzip;q=0.000, *': undefined,
  '*;q=0': undefined,
  'identity;q=1, gzip;q=0.5': undefined,
  br: undefined,
  'identity;q=0': undefined,
  identity: undefined,
  'gzip;q=2': undefined,
  'gzip;level=1': undefined,
  'not-gzip, gzipped': undefined,
  ', ;, gzip;q=': undefined,
  '': undefined,
};

test('Accept-Encoding decides whether a large response is compressed; Vary is always sent', async (t) => {
  const port = await startBodies(t);
  const { headers, body } = await fetchRaw(port, '/large');
  assert.deepEqual([headers['content-encoding'], headers.vary], [undefined, 'Accept-Encoding']);
  assert.equal(body.toString(), large);
  for (const [accepted, encoding] of Object.entries(negotiated)) {
    const { status, headers, body } = await fetchRaw(port, '/large', { 'Accept-Encoding': accepted });
    assert.deepEqual([status, headers['content-encoding']], [200, encoding], accepted);
    assert.deepEqual(
      [headers.vary, headers['content-type']],
      ['Accept-Encoding', 'application/json'],
      accepted,
    );
    assert.equal(Number(headers['content-length']), body.length, accepted);
    assert.equal((encoding ? gunzipSync(body) : body).toString(), large, accepted);
  }
});

test('Bodies up to 8,192 characters, errors, streams, other types and strong tags are not compressed', async (t) => {
  async function* pieces() {
    yield large;
  }
  const message = 'x'.repeat(10_000);
  const port = await startBodies(t, {
    '/error': () => createErrorReply(new ApiError('INVALID_REQUEST', message)),
    '/stream': () => ({ status: 200, body: '', pieces: pieces() }),
    '/text': () => ({ status: 200, body: large, headers: { 'Content-Type': 'text/plain' } }),
    '/strong': () => ({ status: 200, body: large, headers: { ETag: '"a"' } }),
  });
  for (const path of ['/limit', '/error', '/stream', '/text', '/strong']) {
    const { headers, body } = await fetchRaw(port, path, gzip);
    assert.deepEqual([headers['content-encoding'], headers.vary], [undefined, undefined], path);
    assert.ok(body.length >= 8192, path);
  }
});

test('A weak tag is kept, and HEAD has the headers of GET', async (t) => {
  const port = await startBodies(t, {
    '/weak': () => ({ status: 200, body: large, headers: { ETag: 'W/"a"' } }),
  });
  const { headers, body } = await fetchRaw(port, '/weak', gzip);
  assert.deepEqual([headers.etag, headers['content-encoding']], ['W/"a"', 'gzip']);
  for (const [accepted, length] of [
    ['gzip', body.length],
    ['br', Buffer.byteLength(large)],
  ] as const) {
    const head = await fetchRaw(port, '/weak', { 'Accept-Encoding': accepted }, 'HEAD');
    assert.deepEqual([head.status, head.headers.etag, head.body.length], [200, 'W/"a"', 0]);
    assert.deepEqual(
      [head.headers['content-length'], head.headers.vary],
      [`${length}`, 'Accept-Encoding'],
      accepted,
    );
  }
});

test('A response before the end of the request body is not compressed, because bytes follow it', async (t) => {
  const port = await startBodies(t);
  const headers = { ...gzip, 'Content-Length': '5' };
  const early = await exchangeRaw(port, rawRequest(null, { method: 'GET', path: '/large', headers }));
  assert.deepEqual([early.status, early.headers['content-encoding']], [200, undefined]);
  assert.equal(early.text.trim(), large);
});

test('A connection serves compressed and uncompressed responses in turn', async (t) => {
  const port = await startBodies(t);
  const wire = openWire(port);
  t.after(() => wire.end());
  for (const headers of [gzip, {}, gzip, {}]) {
    wire.send(rawRequest(null, { method: 'GET', path: '/large', headers }));
    const answer = await wire.next();
    assert.equal(answer.headers['content-encoding'], headers === gzip ? 'gzip' : undefined);
    assert.ok(headers === gzip || answer.text === large);
  }
});

/** Random text, so that the compressed body exceeds the socket buffers. */
const huge = JSON.stringify(Array.from({ length: 300_000 }, () => Math.random().toString(36)));

test('Clients that disconnect during the compression or the transfer leave nothing in flight', async (t) => {
  const calls = { begun: 0, ended: 0 };
  const onEnd = (): void => void calls.ended++;
  const handle = (): Reply => {
    calls.begun++;
    return { status: 200, body: huge, onEnd };
  };
  const port = await startBodies(t, { '/huge': handle });
  const fetchHuge = rawRequest(null, { method: 'GET', path: '/huge', headers: gzip });
  for (const readsStart of [false, true]) {
    const wires = Array.from({ length: 4 }, () => openWire(port));
    for (const { socket, send } of wires) {
      if (readsStart) socket.once('data', () => socket.destroy());
      send(fetchHuge);
    }
    const total = calls.begun + wires.length;
    await waitFor('the requests', () => calls.begun === total);
    if (!readsStart) for (const wire of wires) wire.end();
    await waitFor('the end of the responses', () => calls.ended === total);
  }
  const { headers, body } = await fetchRaw(port, '/huge', gzip);
  assert.equal(headers['content-encoding'], 'gzip');
  assert.equal(gunzipSync(body).toString(), huge);
});

test('Responses stay uncompressed while too many bodies are pending', async (t) => {
  const port = await startBodies(t, { '/huge': () => ({ status: 200, body: huge }) });
  const answers = await Promise.all(Array.from({ length: 8 }, () => fetchRaw(port, '/huge', gzip)));
  const packed = answers.filter(({ headers }) => headers['content-encoding'] === 'gzip');
  assert.ok(packed.length > 0 && packed.length < answers.length, `${packed.length}`);
  for (const { headers, body } of answers) {
    const text = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
    assert.ok(text.toString() === huge);
    assert.equal(headers.vary, 'Accept-Encoding');
  }
});
