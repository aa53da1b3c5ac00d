/** Bytes on the wire: bodies, framing, connections and clients that abort or send slowly. */
import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { allScopes } from '../../src/contracts/access/access.js';
import {
  callerOf,
  event,
  jsonOf,
  openWire,
  type RequestParts,
  rawRequest,
  type Wire,
} from '../support/http/http.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const { port, key } = service;
const caller = callerOf(service, key);
const operatorKey = await (await keysOf({ after }, service)).add({ scopes: allScopes });

afterEach(async () => {
  assert.equal((await caller.track(event())).status, 200, 'the service no longer responds');
});

async function onWire(use: (wire: Wire) => Promise<void>): Promise<void> {
  const wire = openWire(port);
  try {
    await use(wire);
  } finally {
    wire.end();
  }
}

const countAttempts = async (userId: string): Promise<number> => {
  const { json } = await caller.get(`/api/v1/mastery/${userId}`);
  return json.success ? json.data.skills[0].total_attempts : 0;
};

const json = { 'Content-Type': 'application/json' };
const chunked = { ...json, 'Transfer-Encoding': 'chunked' };
const chunkOf = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const probe = rawRequest(null, { method: 'GET', path: '/livez' });
const megabyte = Buffer.alloc(1024 * 1024);

test('The server sends 413 for a body of any length above the limit and closes the connection', async () => {
  for (const size of [17 * 1024, 200_000, 10_000_000, 40_000_000])
    await onWire(async (wire) => {
      wire.send(rawRequest(key, { body: Buffer.alloc(size, 32) }));
      const { status, headers } = await wire.next();
      assert.deepEqual([status, headers.connection], [413, 'close'], `${size}`);
      await wire.closed();
    });
});

test('The server sends 413 before the body ends, by its Content-Length or by the bytes received', async () => {
  await onWire(async (wire) => {
    wire.send(rawRequest(key, { headers: { ...json, 'Content-Length': '20000' } }));
    assert.equal((await wire.next()).status, 413);
  });
  await onWire(async (wire) => {
    wire.send(rawRequest(key, { headers: chunked }));
    wire.send(chunkOf(' '.repeat(20_000)));
    assert.equal((await wire.next()).status, 413);
    wire.send('0\r\n\r\n');
    await wire.closed();
  });
});

/** Sends up to 40 MiB more until the server closes the connection. */
async function sendUntilClosed(wire: Wire): Promise<void> {
  for (let sent = 0; sent < 40 && !wire.isClosed(); sent++) {
    wire.send(megabyte);
    await sleep(5);
  }
  await wire.closed();
}

test('The server discards up to 16 MiB of a rejected body, then closes the connection', () =>
  onWire(async (wire) => {
    wire.send(rawRequest(key, { headers: { ...json, 'Content-Length': '100000000' } }));
    assert.equal((await wire.next()).status, 413);
    for (let sent = 0; sent < 15; sent++) {
      wire.send(megabyte);
      await sleep(5);
      assert.equal(wire.isClosed(), false, `${sent + 1} MiB`);
    }
    await sendUntilClosed(wire);
  }));

test('track-answer accepts a body of exactly 16 KiB and rejects one byte more', async () => {
  const body = JSON.stringify(event({ padding: '' }));
  const padded = body.replace('"padding":""', `"padding":"${'x'.repeat(16 * 1024 - body.length)}"`);
  assert.equal(padded.length, 16 * 1024);
  assert.equal((await caller.track(padded)).status, 200);
  assert.equal((await caller.track(`${padded} `)).status, 413);
});

const getLive = (parts: RequestParts, events = 1): Buffer =>
  rawRequest(operatorKey, { method: 'GET', path: `/api/v1/live?events=${events}`, ...parts });

test('A streamed response to a GET with a body is complete and keeps the connection open', async () => {
  for (const [body, pauseMs] of [
    ['', 0],
    ['xxx', 0],
    ['xxx', 300],
  ] as const)
    await onWire(async (wire) => {
      for (const events of [2, 1]) {
        const bytes = getLive({ body }, events);
        const split = bytes.length - (pauseMs === 0 ? 0 : body.length);
        wire.send(bytes.subarray(0, split));
        if (pauseMs > 0) await sleep(pauseMs);
        wire.send(bytes.subarray(split));
        const { text } = await wire.next();
        assert.equal(text.match(/data: \{.*\}\n\n/g)?.join(''), text);
        assert.equal(text.split('data: ').length - 1, events);
      }
      wire.send(probe);
      assert.equal((await wire.next()).status, 200);
    });
});

test('The server closes the connection if the body of a GET never arrives or never ends', () =>
  Promise.all([
    onWire(async (wire) => {
      wire.send(getLive({ headers: { 'Content-Length': '3' } }));
      await assert.rejects(wire.next({ limitMs: 60_000 }), /the connection closed; so far: $/);
    }),
    onWire(async (wire) => {
      wire.send(getLive({ headers: { 'Content-Length': '100000000' } }));
      await sendUntilClosed(wire);
    }),
  ]).then(() => undefined));

test('track-answer reads a chunked body in one piece and byte by byte', () =>
  onWire(async (wire) => {
    const head = rawRequest(key, { headers: { ...json, 'Transfer-Encoding': 'Chunked' } });
    const body = JSON.stringify(event());
    wire.send(Buffer.concat([head, Buffer.from(`${chunkOf(body)}0\r\n\r\n`)]));
    assert.equal((await wire.next()).status, 200);
    // uWebSockets.js needs the request line in one piece.
    const line = head.indexOf('\n') + 1;
    wire.send(head.subarray(0, line));
    for (const byte of head.subarray(line)) {
      await sleep(1);
      wire.send(Buffer.of(byte));
    }
    for (const character of body) wire.send(chunkOf(character));
    wire.send('0\r\n\r\n');
    assert.equal((await wire.next()).status, 200);
  }));

test('track-answer counts no answer if the body is incomplete', async () => {
  const body = JSON.stringify(event({ user_id: 'cut-off' }));
  await onWire(async (wire) => {
    wire.send(rawRequest(key, { headers: chunked }));
    wire.send(chunkOf(body));
    // A later request proves that the server has read the chunk.
    assert.equal(await countAttempts('cut-off'), 0);
  });
  const bytes = rawRequest(key, { body });
  for (const share of [0.3, 0.9, 0.99])
    await onWire(async (wire) => {
      wire.send(bytes.subarray(0, Math.floor(bytes.length * share)));
      await sleep(20);
      wire.socket.resetAndDestroy();
    });
  await sleep(100);
  assert.equal(await countAttempts('cut-off'), 0);
});

const body = JSON.stringify(event({ user_id: 'framing' }));
const length = `${body.length}`;
const repeatedHeaders: readonly Record<string, readonly string[]>[] = [
  { 'Content-Length': [length, length] },
  { 'Content-Length': [length, '1'] },
  { 'X-API-Key': [key, key] },
  { 'X-API-Key': [key, 'other'] },
  { 'Idempotency-Key': ['a', 'b'] },
  { Authorization: ['Basic YTpi', 'Basic YTpj'] },
];
const rejectedCodings = ['gzip', 'gzip, chunked', 'chunked, chunked', 'identity', 'xchunked'];

test('The server sends 400 for repeated headers and a Transfer-Encoding other than chunked, and closes the connection', async () => {
  const requests = [
    ...repeatedHeaders.map((headers) => rawRequest(key, { body, headers })),
    ...rejectedCodings.map((coding) =>
      Buffer.concat([
        rawRequest(key, { headers: { ...json, 'Transfer-Encoding': coding } }),
        Buffer.from(`${chunkOf(body)}0\r\n\r\n`),
      ]),
    ),
  ];
  for (const bytes of requests)
    await onWire(async (wire) => {
      wire.send(bytes);
      const response = await wire.next();
      assert.deepEqual([response.status, jsonOf(response).error.code], [400, 'INVALID_REQUEST'], `${bytes}`);
      await wire.closed();
    });
  assert.equal(await countAttempts('framing'), 0);
});

test('A connection stays open after rejected requests', () =>
  onWire(async (wire) => {
    const requests = [
      [rawRequest(key, { body: '{' }), 400],
      [rawRequest(null, { body }), 401],
      [rawRequest('unknown', { body }), 401],
      [rawRequest(key, { path: '/api/v1/nothing', body }), 404],
      [rawRequest(key, { method: 'PUT', body }), 405],
      [rawRequest(key, { body, headers: { 'Content-Type': 'text/plain' } }), 415],
      [rawRequest(key, {}), 415],
      [rawRequest(key, { headers: json }), 400],
      [rawRequest(key, { method: 'GET', path: '/api/v1/mastery/%' }), 400],
      [probe, 200],
      [rawRequest(key, { body: JSON.stringify(event()) }), 200],
    ] as const;
    for (const [bytes, status] of [...requests, ...requests]) {
      wire.send(bytes);
      assert.equal((await wire.next()).status, status);
    }
  }));

test('The server closes a connection with pipelined requests, and counts each answer at most once', async () => {
  await onWire(async (wire) => {
    wire.send(Buffer.concat([probe, probe, probe]));
    await wire.closed();
    await assert.rejects(wire.next(), /so far: $/);
  });
  await onWire(async (wire) => {
    const post = rawRequest(key, { body: JSON.stringify(event({ user_id: 'pipelined' })) });
    wire.send(Buffer.concat([post, post, post]));
    let responses = 0;
    while (responses < 3 && (await wire.next().catch(() => null)) !== null) responses += 1;
    await waitFor('the answers with a response', async () => (await countAttempts('pipelined')) >= responses);
    const attempts = await countAttempts('pipelined');
    assert.ok(attempts <= 3, `${responses} responses, ${attempts} counted`);
  });
});
