/** Bytes on the wire: bodies, framing, connections and clients that misbehave. Nothing of it ends the process. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, afterEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { allScopes } from '../../src/contracts/access/access.js';
import { seeded } from '../support/builders/random.js';
import {
  callerOf,
  event,
  exchangeRaw,
  jsonOf,
  openWire,
  rawRequest,
  type Wire,
} from '../support/http/http.js';
import { keysOf, startService } from '../support/servers/service.js';

const service = await startService({ after });
const { port, key } = service;
const caller = callerOf(service, key);

afterEach(async () => {
  assert.equal((await caller.track(event())).status, 200, 'the service works on');
});

async function onWire(use: (wire: Wire) => Promise<void>): Promise<void> {
  const wire = openWire(port);
  try {
    await use(wire);
  } finally {
    wire.end();
  }
}

const attemptsOf = async (userId: string): Promise<number> => {
  const { json } = await caller.get(`/api/v1/mastery/${userId}`);
  return json.success ? json.data.skills[0].total_attempts : 0;
};

const probe = rawRequest(null, { method: 'GET', path: '/livez' });
const json = { 'Content-Type': 'application/json' };

for (const size of [17 * 1024, 200_000, 10_000_000, 40_000_000]) {
  test(`a body of ${size} bytes: the client sees 413, then the connection closes`, () =>
    onWire(async (wire) => {
      wire.send(rawRequest(key, { body: Buffer.alloc(size, 32) }));
      const answer = await wire.next();
      assert.deepEqual([answer.status, jsonOf(answer).error.code], [413, 'PAYLOAD_TOO_LARGE']);
      assert.equal(answer.headers.connection, 'close');
      await wire.closed();
    }));
}

test('413 is sent as soon as it is known, by length or by what has arrived', async () => {
  await onWire(async (wire) => {
    wire.send(rawRequest(key, { headers: { ...json, 'Content-Length': '20000' } }));
    assert.equal((await wire.next()).status, 413);
  });
  await onWire(async (wire) => {
    wire.send(rawRequest(key, { headers: { ...json, 'Transfer-Encoding': 'chunked' } }));
    wire.send(`4e20\r\n${' '.repeat(20_000)}\r\n`);
    assert.equal((await wire.next()).status, 413);
    wire.send('0\r\n\r\n');
    await wire.closed();
  });
});

const megabyte = Buffer.alloc(1024 * 1024);

/** Sends on, 40 MiB at most, until the other side has had enough. */
async function closedBySending(wire: Wire): Promise<void> {
  for (let sent = 0; sent < 40 && !wire.isClosed(); sent++) {
    wire.send(megabyte);
    await sleep(5);
  }
  await wire.closed();
}

test('up to 16 MiB of a refused body is dropped, then the connection closes', () =>
  onWire(async (wire) => {
    wire.send(rawRequest(key, { headers: { ...json, 'Content-Length': '100000000' } }));
    assert.equal((await wire.next()).status, 413);
    for (let sent = 0; sent < 15; sent++) {
      wire.send(megabyte);
      await sleep(5);
      assert.equal(wire.isClosed(), false, `${sent + 1} MiB`);
    }
    await closedBySending(wire);
  }));

for (const [how, length, pauseMs] of [
  ['of no bytes', 0, 0],
  ['that comes with its head', 3, 0],
  ['that comes later', 3, 300],
] as const) {
  test(`an answer in pieces to a GET with a body ${how} is whole, and the connection stays`, async (t) => {
    const operator = await (await keysOf(t, service)).add({ scopes: allScopes });
    const live = (events: number, body = 'x'.repeat(length)): Buffer =>
      rawRequest(operator, { method: 'GET', path: `/api/v1/live?events=${events}`, body });
    await onWire(async (wire) => {
      for (const events of [2, 1, 1]) {
        const sent = live(events);
        const split = sent.length - (pauseMs === 0 ? 0 : length);
        wire.send(sent.subarray(0, split));
        if (pauseMs > 0) await sleep(pauseMs);
        wire.send(sent.subarray(split));
        const answer = await wire.next();
        assert.equal(answer.text.match(/data: \{.*\}\n\n/g)?.join(''), answer.text);
        assert.equal(answer.text.split('data: ').length - 1, events);
      }
      wire.send(probe);
      assert.equal((await wire.next()).status, 200);
    });
  });
}

test('a GET whose body does not come is closed; one whose body has no end, too', async (t) => {
  const operator = await (await keysOf(t, service)).add({ scopes: allScopes });
  const begun = (length: string): Buffer =>
    rawRequest(operator, {
      method: 'GET',
      path: '/api/v1/live?events=1',
      headers: { 'Content-Length': length },
    });
  await onWire(async (wire) => {
    wire.send(begun('3'));
    await assert.rejects(wire.next({ limitMs: 30_000 }), /the connection closed; so far: $/);
  });
  await onWire(async (wire) => {
    wire.send(begun('100000000'));
    await closedBySending(wire);
  });
});

test('16 KiB exactly fits', async () => {
  const body = JSON.stringify(event({ padding: '' }));
  const padded = body.replace('"padding":""', `"padding":"${'x'.repeat(16 * 1024 - body.length)}"`);
  assert.equal(padded.length, 16 * 1024);
  assert.equal((await caller.track(padded)).status, 200);
  assert.equal((await caller.track(`${padded} `)).status, 413);
});

test('chunked bodies, in one piece and byte by byte', () =>
  onWire(async (wire) => {
    const head = rawRequest(key, { headers: { ...json, 'Transfer-Encoding': 'Chunked' } });
    const body = JSON.stringify(event());
    const chunked = `${body.length.toString(16)};extension=1\r\n${body}\r\n0\r\n\r\n`;
    wire.send(Buffer.concat([head, Buffer.from(chunked.replace(';extension=1', ''))]));
    assert.equal((await wire.next()).status, 200);
    wire.send(head);
    for (const character of body) wire.send(`1\r\n${character}\r\n`);
    wire.send('0\r\n\r\n');
    assert.equal((await wire.next()).status, 200);
  }));

test('a chunked body that is cut off is recorded by nobody', () =>
  onWire(async (wire) => {
    const body = JSON.stringify(event({ user_id: 'cut-off' }));
    wire.send(rawRequest(key, { headers: { ...json, 'Transfer-Encoding': 'chunked' } }));
    wire.send(`${body.length.toString(16)}\r\n${body}\r\n`);
    await sleep(100);
    assert.equal(await attemptsOf('cut-off'), 0);
    wire.end();
    await sleep(100);
    assert.equal(await attemptsOf('cut-off'), 0);
  }));

const body = JSON.stringify(event({ user_id: 'framing' }));
const length = `${body.length}`;
const framing: readonly (readonly [string, Record<string, string | readonly string[]>])[] = [
  ['Content-Length twice, equal', { 'Content-Length': [length, length] }],
  ['Content-Length twice, different', { 'Content-Length': [length, '1'] }],
  ['X-API-Key twice', { 'X-API-Key': [key, key] }],
  ['X-API-Key twice, the second unknown', { 'X-API-Key': [key, 'other'] }],
  ['Idempotency-Key twice', { 'Idempotency-Key': ['a', 'b'] }],
  ['Authorization twice', { Authorization: ['Basic YTpi', 'Basic YTpj'] }],
];

for (const [what, headers] of framing) {
  test(`${what}: 400 and the connection closes`, () =>
    onWire(async (wire) => {
      wire.send(rawRequest(key, { body, headers }));
      const answer = await wire.next();
      assert.deepEqual([answer.status, jsonOf(answer).error.code], [400, 'INVALID_REQUEST']);
      await wire.closed();
      assert.equal(await attemptsOf('framing'), 0);
    }));
}

for (const coding of ['gzip', 'gzip, chunked', 'chunked, chunked', 'identity', 'xchunked']) {
  test(`Transfer-Encoding ${coding}: 400 and the connection closes`, () =>
    onWire(async (wire) => {
      wire.send(rawRequest(key, { headers: { ...json, 'Transfer-Encoding': coding } }));
      wire.send(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
      assert.equal((await wire.next()).status, 400);
      await wire.closed();
      assert.equal(await attemptsOf('framing'), 0);
    }));
}

const unparsable: readonly (readonly [string, string])[] = [
  ['no HTTP at all', 'hello there\r\n\r\n'],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'.padEnd(64, '\x00')],
  ['HTTP/1.0', 'GET /livez HTTP/1.0\r\nHost: a\r\n\r\n'],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['no Host', 'GET /livez HTTP/1.1\r\n\r\n'],
  ['an absolute target', 'GET http://a/livez HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['headers over 4 KiB', `GET /livez HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(5000)}\r\n\r\n`],
  ['too many headers', `GET /livez HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(500)}\r\n`],
  ['a long target', `GET /${'x'.repeat(10_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
  ['Content-Length that is no number', 'POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: abc\r\n\r\n'],
  ['a negative Content-Length', 'POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n'],
  [
    'Content-Length and chunked',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['a bad chunk size', 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n'],
  ['a blank before the colon', 'GET /livez HTTP/1.1\r\nHost : a\r\n\r\n'],
  ['NUL in a header', 'GET /livez HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n'],
];

test('what the parser refuses: its own answer, or a closed connection', async () => {
  // Some of these it takes for an unfinished head, and closes when nothing more comes for 10 s.
  const limitMs = 20_000;
  await Promise.all(
    unparsable.map(([what, bytes]) =>
      onWire(async (wire) => {
        wire.send(Buffer.from(bytes, 'latin1'));
        const status = await wire.next({ limitMs }).then(
          (answer) => answer.status,
          () => 'closed',
        );
        assert.ok(['closed', 400, 404, 431, 505].includes(status), `${what}: ${status}`);
        if (status !== 404) await wire.closed(limitMs);
      }),
    ),
  );
});

test('a slow client, byte by byte, is answered', () =>
  onWire(async (wire) => {
    const bytes = rawRequest(key, { body: JSON.stringify(event()) });
    // The request line comes in one piece: uWebSockets.js answers 505 to one that is cut.
    const line = bytes.indexOf('\n') + 1;
    wire.send(bytes.subarray(0, line));
    for (const byte of bytes.subarray(line)) {
      await sleep(1);
      wire.send(Buffer.from([byte]));
    }
    assert.equal((await wire.next()).status, 200);
  }));

test('an aborted client in mid-body: nothing is recorded', async () => {
  const bytes = rawRequest(key, { body: JSON.stringify(event({ user_id: 'aborted' })) });
  for (const share of [0.3, 0.9, 0.99]) {
    await onWire(async (wire) => {
      wire.send(bytes.subarray(0, Math.floor(bytes.length * share)));
      await sleep(20);
      wire.socket.resetAndDestroy();
    });
  }
  await sleep(100);
  assert.equal(await attemptsOf('aborted'), 0);
});

test('clients that go away before their answer harm nobody; what they sent is counted at most once', async () => {
  const bytes = rawRequest(key, { body: JSON.stringify(event({ user_id: 'impatient' })) });
  for (let i = 0; i < 50; i++) {
    await onWire(async (wire) => {
      wire.send(bytes);
      await sleep(i % 5);
      wire.socket.resetAndDestroy();
    });
  }
  const attempts = await attemptsOf('impatient');
  assert.ok(attempts <= 50, `${attempts}`);
});

test('keep-alive: a connection serves on after errors', () =>
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

test('Expect: 100-continue', () =>
  onWire(async (wire) => {
    const text = JSON.stringify(event());
    wire.send(
      rawRequest(key, { headers: { ...json, Expect: '100-continue', 'Content-Length': `${text.length}` } }),
    );
    assert.equal((await wire.next()).status, 100);
    wire.send(text);
    assert.equal((await wire.next()).status, 200);
  }));

test('pipelined requests that come together: the connection closes, and none is answered', () =>
  onWire(async (wire) => {
    wire.send(Buffer.concat([probe, probe, probe]));
    await wire.closed();
    await assert.rejects(wire.next(), /so far: $/);
  }));

test('pipelined answers: those that were answered are counted, and none twice', () =>
  onWire(async (wire) => {
    const post = rawRequest(key, { body: JSON.stringify(event({ user_id: 'pipelined' })) });
    wire.send(Buffer.concat([post, post, post]));
    let answered = 0;
    while (answered < 3 && (await wire.next().catch(() => null)) !== null) answered += 1;
    await sleep(100);
    const attempts = await attemptsOf('pipelined');
    assert.ok(attempts >= answered && attempts <= 3, `${answered} answered, ${attempts} counted`);
  }));

test('200 connections at once, half of them silent', async () => {
  const silent = Array.from({ length: 100 }, () => openWire(port));
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async () => (await caller.track(event())).status),
  );
  for (const wire of silent) wire.end();
  assert.deepEqual([...new Set(statuses)], [200]);
});

/** A whole number from 0 to below the bound. */
type Draw = (below: number) => number;

const bytesOf = (draw: Draw, length: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, () => draw(256)));

/** Flips, cuts, doubles or inserts bytes. */
function mutate(draw: Draw, bytes: Buffer): Buffer {
  const at = draw(bytes.length);
  const length = 1 + draw(19);
  const [before, behind] = [bytes.subarray(0, at), bytes.subarray(at)];
  switch (draw(5)) {
    case 0:
      return Buffer.concat([before, bytesOf(draw, length), behind]);
    case 1:
      return Buffer.concat([before, behind.subarray(length)]);
    case 2:
      return Buffer.concat([before, bytesOf(draw, Math.min(length, behind.length)), behind.subarray(length)]);
    case 3:
      return Buffer.concat([before, behind.subarray(0, length), behind]);
    default:
      return before;
  }
}

test('fuzz: random bytes and mutated requests for some seconds', async () => {
  const requests = [
    rawRequest(key, { body }),
    rawRequest(key, { path: '/api/v1/track-answers', body: JSON.stringify({ events: [event(), event()] }) }),
    rawRequest(key, { method: 'GET', path: '/api/v1/predictions/a%2Fb?days=30&confidence_level=0.9' }),
    rawRequest(key, { headers: { ...json, 'Transfer-Encoding': 'chunked' } }),
    Buffer.concat([probe, probe]),
  ];
  /** The same for the same seed. */
  const madeOf = (seed: number): Buffer => {
    const random = seeded(seed);
    const draw: Draw = (below) => Math.floor(below * random());
    const request = requests[draw(requests.length)] as Buffer;
    const bytes = draw(10) === 0 ? bytesOf(draw, 1 + draw(2999)) : mutate(draw, request);
    return draw(2) === 0 ? mutate(draw, bytes.length > 0 ? bytes : request) : bytes;
  };
  let seed = randomInt(2 ** 31);
  // At once, for a process that ends tells nothing later.
  process.stdout.write(`fuzz: seeds from ${seed} on\n`);
  const fuzz = async (): Promise<void> => {
    const wire = openWire(port);
    wire.send(madeOf(seed++));
    await wire.next({ limitMs: 20 }).catch(() => undefined);
    wire.socket.resetAndDestroy();
  };
  const until = Date.now() + 4000;
  const loop = async (): Promise<void> => {
    while (Date.now() < until) await fuzz();
  };
  await Promise.all(Array.from({ length: 16 }, loop));
  assert.equal((await exchangeRaw(port, probe)).status, 200);
});
