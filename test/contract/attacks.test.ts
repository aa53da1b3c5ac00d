/** Attacks by bytes: nothing ends the process, nothing gets 500, no hidden request is run, and memory comes back. */
import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { oddHeads, oddPaths, smugglings } from '../support/http/attack-bytes.js';
import { type Answer, callerOf, event, openWire, rawRequest, type Wire } from '../support/http/http.js';
import { startService } from '../support/servers/service.js';

const service = await startService({ after });
const { port, key } = service;
const caller = callerOf(service, key);

afterEach(async () => {
  assert.equal((await caller.track(event())).status, 200, 'the service works on');
});

/** The parser closes what it takes for an unfinished request after 10 s. */
const limitMs = 60_000;
/** What may come back: ours, or the parser's own. */
const refusals = [400, 404, 405, 413, 431, 505];

/** All answers until the connection closes. */
async function answersTo(bytes: string | Buffer): Promise<Answer[]> {
  const wire = openWire(port);
  wire.send(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  const answers: Answer[] = [];
  for (;;) {
    const answer = await wire.next({ limitMs }).catch(() => null);
    if (answer === null) break;
    answers.push(answer);
  }
  assert.ok(wire.isClosed(), `the connection stays open: ${bytes.slice(0, 200)}`);
  return answers;
}

test('request smuggling: the hidden request is never run, and the connection ends', async () => {
  const body = JSON.stringify(event({ user_id: 'in-front' }));
  const names = Object.keys(smugglings(key, body, ''));
  await Promise.all(
    names.map(async (name, i) => {
      const hidden = rawRequest(key, { body: JSON.stringify(event({ user_id: `hidden-${i}` })) }).toString();
      const answers = await answersTo(smugglings(key, body, hidden)[name] as string);
      for (const { status, text } of answers)
        assert.ok([200, ...refusals].includes(status), `${name}: ${text}`);
      assert.ok(answers.length <= 2, name);
      const { status } = await caller.get(`/api/v1/mastery/hidden-${i}`);
      assert.equal(status, 404, `${name}: the hidden request was run`);
    }),
  );
});

test('heads that are too long, too many, or name no path', async () => {
  await Promise.all(
    Object.entries(oddHeads(key)).map(async ([name, bytes]) => {
      for (const { status } of await answersTo(bytes))
        assert.ok([200, ...refusals].includes(status), `${name}: ${status}`);
    }),
  );
  const [answer] = await answersTo(oddHeads(key)['two hosts'] as string);
  assert.equal(answer?.status, 400);
});

for (const [status, paths] of Object.entries(oddPaths)) {
  test(`paths that lead astray: ${status}`, async () => {
    for (const path of paths) {
      const bytes = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\n\r\n`, 'latin1');
      const wire = openWire(port);
      wire.send(bytes);
      const answer = await wire.next();
      wire.end();
      assert.equal(answer.status, Number(status), `${path}: ${answer.text}`);
      assert.ok('x-request-id' in answer.headers, path);
    }
  });
}

/** Sends a piece every now and then, and never the end. @returns how long the service bore it */
async function drip(begin: Buffer, pieces: () => Buffer): Promise<number> {
  const wire = openWire(port);
  const since = performance.now();
  wire.send(begin);
  const timer = setInterval(() => wire.send(pieces()), 1000);
  await wire.closed(120_000).finally(() => clearInterval(timer));
  return performance.now() - since;
}

test('a head, a body or a chunk that drips in: the connection is closed, with and without a key', async () => {
  const letter = () => Buffer.from('a');
  const json = { 'Content-Type': 'application/json' };
  await Promise.all([
    drip(Buffer.from('GET /livez HTTP/1.1\r\nHost: a\r\nX: '), letter),
    drip(Buffer.from('GET /livez HTTP/1.1\r\nHost: a\r\n'), () => Buffer.from('X: y\r\n')),
    drip(rawRequest(key, { headers: { ...json, 'Content-Length': '16000' } }), letter),
    drip(rawRequest(null, { headers: { ...json, 'Content-Length': '16000' } }), letter),
    drip(rawRequest(key, { headers: { ...json, 'Transfer-Encoding': 'chunked' } }), () =>
      Buffer.from('1\r\na\r\n'),
    ),
    drip(rawRequest(key, { headers: { ...json, 'Content-Length': '100000000' } }), letter),
    drip(Buffer.alloc(0), () => Buffer.alloc(0)),
  ]);
});

test('thousands of connections that never finish: others are served, and their memory comes back', async () => {
  const halves = [
    Buffer.from('GET /livez HTTP/1.1\r\nHost: a\r\n'),
    rawRequest(key, { headers: { 'Content-Type': 'application/json', 'Content-Length': '16000' } }),
    Buffer.concat([
      rawRequest(key, {
        path: '/api/v1/track-answers',
        headers: { 'Content-Type': 'application/json', 'Content-Length': '1000000' },
      }),
      Buffer.alloc(30_000, 32),
    ]),
  ];
  const wires: Wire[] = Array.from({ length: 2000 }, (_, i) => {
    const wire = openWire(port);
    wire.send(halves[i % halves.length] as Buffer);
    return wire;
  });
  const statuses = await Promise.all(
    Array.from({ length: 50 }, async () => (await caller.track(event())).status),
  );
  assert.deepEqual([...new Set(statuses)], [200]);
  await Promise.all(wires.map((wire) => wire.closed(120_000)));
});
