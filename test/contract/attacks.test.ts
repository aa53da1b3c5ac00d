/** Hostile bytes and bodies: the process survives, no hidden request runs, and memory is released. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { afterEach, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { seeded } from '../support/builders/random.js';
import { oddHeads, oddPaths, smuggledRequests } from '../support/http/attack-bytes.js';
import {
  type Answer,
  callerOf,
  event,
  openWire,
  type RequestParts,
  rawRequest,
  type Wire,
} from '../support/http/http.js';
import { roundsOf } from '../support/runner/long-form.js';
import { sharedService } from '../support/servers/service.js';

const service = await sharedService();
const { port, key } = service;
const caller = callerOf(service, key);

afterEach(async () => {
  assert.equal((await caller.track(event())).status, 200, 'the service no longer responds');
});

/** uWebSockets.js closes an unfinished request after 10 s. */
const limitMs = 120_000;
/** Of the service or of its HTTP parser. */
const rejections = [400, 404, 405, 413, 431, 505];
const json = { 'Content-Type': 'application/json' };

/** All responses until the connection closes. */
async function exchange(bytes: string): Promise<Answer[]> {
  const wire = openWire(port);
  wire.send(Buffer.from(bytes, 'latin1'));
  const responses: Answer[] = [];
  for (;;) {
    const response = await wire.next({ limitMs }).catch(() => null);
    if (response === null) break;
    responses.push(response);
  }
  assert.ok(wire.isClosed(), `the connection stays open: ${bytes.slice(0, 200)}`);
  return responses;
}

test('The server runs no smuggled request, and closes the connection', async () => {
  const body = JSON.stringify(event({ user_id: 'in-front' }));
  const names = Object.keys(smuggledRequests(key, body, ''));
  await Promise.all(
    names.map(async (name, i) => {
      const hidden = rawRequest(key, { body: JSON.stringify(event({ user_id: `hidden-${i}` })) }).toString();
      const responses = await exchange(smuggledRequests(key, body, hidden)[name] as string);
      for (const { status, text } of responses)
        assert.ok([200, ...rejections].includes(status), `${name}: ${text}`);
      assert.ok(responses.length <= 2, name);
      assert.equal(
        (await caller.get(`/api/v1/mastery/hidden-${i}`)).status,
        404,
        `${name}: the hidden request ran`,
      );
    }),
  );
});

test('The server survives malformed, oversized and unsupported request heads, and closes the connection', async () => {
  await Promise.all(
    Object.entries(oddHeads(key)).map(async ([name, bytes]) => {
      const responses = await exchange(bytes);
      for (const { status } of responses)
        assert.ok([200, ...rejections].includes(status), `${name}: ${status}`);
      if (name === 'two hosts') assert.equal(responses[0]?.status, 400);
    }),
  );
});

test('The server resolves no path outside the route table, whatever its encoding', async () => {
  for (const [status, paths] of Object.entries(oddPaths))
    for (const path of paths) {
      const wire = openWire(port);
      wire.send(Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\n\r\n`, 'latin1'));
      const response = await wire.next();
      wire.end();
      assert.equal(response.status, Number(status), `${path}: ${response.text}`);
      assert.ok('x-request-id' in response.headers, path);
    }
});

/** Sends a piece every second and never the end. Resolves when the server closes the connection. */
async function drip(begin: Buffer, piece: string): Promise<void> {
  const wire = openWire(port);
  wire.send(begin);
  const timer = setInterval(() => wire.send(piece), 1000);
  await wire.closed(limitMs).finally(() => clearInterval(timer));
}

const partialRequests = [
  Buffer.from('GET /livez HTTP/1.1\r\nHost: a\r\n'),
  rawRequest(key, { headers: { ...json, 'Content-Length': '16000' } }),
  Buffer.concat([
    rawRequest(key, { path: '/api/v1/track-answers', headers: { ...json, 'Content-Length': '1000000' } }),
    Buffer.alloc(30_000, 32),
  ]),
];

test('The server serves others while clients never finish their requests, and disconnects those', async () => {
  const wires: Wire[] = Array.from({ length: roundsOf(300, 2000) }, (_, i) => {
    const wire = openWire(port);
    wire.send(partialRequests[i % partialRequests.length] as Buffer);
    return wire;
  });
  const dripping = Promise.all([
    drip(Buffer.from('GET /livez HTTP/1.1\r\nHost: a\r\nX: '), 'a'),
    drip(Buffer.from('GET /livez HTTP/1.1\r\nHost: a\r\n'), 'X: y\r\n'),
    drip(rawRequest(key, { headers: { ...json, 'Content-Length': '16000' } }), 'a'),
    drip(rawRequest(null, { headers: { ...json, 'Content-Length': '16000' } }), 'a'),
    drip(rawRequest(key, { headers: { ...json, 'Transfer-Encoding': 'chunked' } }), '1\r\na\r\n'),
    drip(rawRequest(key, { headers: { ...json, 'Content-Length': '100000000' } }), 'a'),
    drip(Buffer.alloc(0), ''),
  ]);
  const tracked = Array.from({ length: 50 }, async () => (await caller.track(event())).status);
  assert.deepEqual([...new Set(await Promise.all(tracked))], [200]);
  await Promise.all(wires.map((wire) => wire.closed(limitMs)));
  await dripping;
});

const batch = '/api/v1/track-answers';
const gzip = { 'Content-Encoding': 'gzip', ...json };
const lines = { 'Content-Type': 'application/x-ndjson' };
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const objects = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
const fields = (count: number): string => Array.from({ length: count }, (_, i) => `"k${i}":0`).join(',');
const plain = JSON.stringify(event());
const invalidEvent = { user_id: 1, skill_id: 1, is_correct: 1, event_id: 1, item_id: 1 };
const invalidEvents = JSON.stringify({ events: Array(1000).fill(invalidEvent) });
const classOf500 = JSON.stringify({ user_ids: Array(500).fill('\u{1f600}'.repeat(128)) });
const hugePlan = JSON.stringify({
  answers_per_day: 1,
  skills: Array.from({ length: 100_000 }, (_, i) => `${i}`),
});

const costly: readonly (readonly [string, number, RequestParts])[] = [
  ['arrays 8,000 deep', 400, { body: nested(8000) }],
  ['objects 2,500 deep', 400, { body: objects(2500) }],
  ['a batch 500,000 deep', 400, { path: batch, body: nested(500_000) }],
  ['an unknown field 7,000 deep', 200, { body: plain.replace('{', `{"x":${nested(7000)},`) }],
  ['1,500 unknown fields', 200, { body: plain.replace('{', `{${fields(1500)},`) }],
  ['70,000 fields in a batch', 400, { path: batch, body: `{${fields(70_000)}}` }],
  ['a prototype', 400, { body: `{"__proto__":${plain}}` }],
  ['a constructor with a prototype', 400, { body: `{"constructor":{"prototype":${plain}}}` }],
  ['a number of 10,000 digits', 400, { body: `{"user_id":${'9'.repeat(10_000)}}` }],
  ['an id of 15,000 characters', 400, { body: plain.replace(/learner-\d+/, 'x'.repeat(15_000)) }],
  ['500,000 events', 400, { path: batch, body: `{"events":[${'0,'.repeat(499_999)}0]}` }],
  ['1,000 invalid events', 400, { path: batch, body: invalidEvents }],
  ['a million blank lines', 400, { path: batch, headers: lines, body: '\n'.repeat(1_000_000) }],
  ['half a million lines', 400, { path: batch, headers: lines, body: '1\n'.repeat(500_000) }],
  ['a line of a megabyte', 400, { path: batch, headers: lines, body: `"${'x'.repeat(1_000_000)}"` }],
  ['gzip of 100 MB', 413, { path: batch, headers: gzip, body: gzipSync(Buffer.alloc(100_000_000, 32)) }],
  ['gzip of gzip', 400, { path: batch, headers: gzip, body: gzipSync(gzipSync(plain)) }],
  ['500 learners with escapes', 200, { path: '/api/v1/predictions', body: classOf500 }],
  ['a plan of 100,000 skills', 413, { path: '/api/v1/predictions/a/what-if', body: hugePlan }],
];

const residentMiB = (): number => process.memoryUsage.rss() / 1024 / 1024;

test('The service responds to costly bodies, alone and concurrently, and releases their memory', async () => {
  for (const [name, status, parts] of costly) {
    const response = await caller.raw(parts);
    assert.equal(response.status, status, `${name}: ${response.text.slice(0, 500)}`);
    assert.equal(Object.hasOwn(Object.prototype, 'is_correct'), false, name);
  }
  const round = () => Promise.all(costly.map(([, , parts]) => caller.raw(parts)));
  await round();
  const before = residentMiB();
  for (let i = 0; i < roundsOf(1, 3); i++) await round();
  assert.ok(residentMiB() - before < 200, `${residentMiB() - before} MiB more`);
});

test('track-answer reads no field from a prototype in the body', async () => {
  const text = JSON.stringify(event()).replace('{', '{"__proto__":{"event_id":"polluted"},');
  const [first, second] = [await caller.track(text), await caller.track(text)];
  assert.deepEqual([first.status, second.headers['idempotent-replayed']], [200, undefined]);
});

test('The server disconnects a client that sends a body in 100,000 chunks of one byte', async () => {
  const headers = { ...json, 'Transfer-Encoding': 'chunked' };
  const before = residentMiB();
  const wires = Array.from({ length: 4 }, () => openWire(port));
  for (const wire of wires) {
    wire.send(rawRequest(key, { path: batch, headers }));
    wire.send(Buffer.from('1\r\n \r\n'.repeat(100_000)));
  }
  await Promise.all(wires.map((wire) => wire.closed()));
  assert.ok(residentMiB() - before < 100, `${residentMiB() - before} MiB more`);
});

/** A whole number from 0 to below the limit. */
type Draw = (below: number) => number;

const randomBytes = (draw: Draw, length: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, () => draw(256)));

/** Inserts, deletes, replaces, doubles or cuts bytes. */
function mutate(draw: Draw, bytes: Buffer): Buffer {
  const at = draw(bytes.length);
  const length = 1 + draw(19);
  const [before, rest] = [bytes.subarray(0, at), bytes.subarray(at)];
  const changed = [
    [randomBytes(draw, length), rest],
    [rest.subarray(length)],
    [randomBytes(draw, Math.min(length, rest.length)), rest.subarray(length)],
    [rest.subarray(0, length), rest],
    [],
  ];
  return Buffer.concat([before, ...(changed[draw(5)] as Buffer[])]);
}

test('The server survives random bytes and mutated requests', async () => {
  const probe = rawRequest(null, { method: 'GET', path: '/livez' });
  const requests = [
    rawRequest(key, { body: plain }),
    rawRequest(key, { path: batch, body: JSON.stringify({ events: [event(), event()] }) }),
    rawRequest(key, { method: 'GET', path: '/api/v1/predictions/a%2Fb?days=30&confidence_level=0.9' }),
    rawRequest(key, { headers: { ...json, 'Transfer-Encoding': 'chunked' } }),
    Buffer.concat([probe, probe]),
  ];
  const build = (seed: number): Buffer => {
    const random = seeded(seed);
    const draw: Draw = (below) => Math.floor(below * random());
    const request = requests[draw(requests.length)] as Buffer;
    const bytes = draw(10) === 0 ? randomBytes(draw, 1 + draw(2999)) : mutate(draw, request);
    return draw(2) === 0 ? mutate(draw, bytes.length > 0 ? bytes : request) : bytes;
  };
  let seed = randomInt(2 ** 31);
  // Printed first: a process that crashes prints nothing later.
  process.stdout.write(`mutated requests: seeds from ${seed}\n`);
  const end = seed + roundsOf(800, 8000);
  const sendSome = async (): Promise<void> => {
    while (seed < end) {
      const wire = openWire(port);
      wire.send(build(seed++));
      await wire.next({ limitMs: 20 }).catch(() => undefined);
      wire.socket.resetAndDestroy();
    }
  };
  await Promise.all(Array.from({ length: 16 }, sendSome));
});
