/** Answers sent piece by piece: to slow readers, to those who go away, and when the source fails. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGate } from '../../src/http/gate.js';
import type { Reply, Route } from '../../src/http/route.js';
import { type Server, startServer } from '../../src/http/server.js';
import { createLogger } from '../../src/logger.js';
import type { MetricRegistry } from '../../src/services/operations/metric-registry.js';
import { exchangeRaw, openWire, rawRequest, type Wire } from '../support/http/http.js';
import { waitFor } from '../support/wait.js';

const noFigures = { add: () => undefined };
const piece = `${'x'.repeat(64 * 1024 - 1)}\n`;

/** Reads nothing from now on. */
function standStill({ socket }: Wire): void {
  socket.removeAllListeners('data');
  socket.pause();
}

interface Source {
  made: number;
  over: number;
}

/** A server with one route, whose answer has so many pieces and then perhaps fails. */
async function serverOf(t: TestContext, pieces: number, fails: boolean): Promise<[Server, Source]> {
  const source = { made: 0, over: 0 };
  async function* make(): AsyncGenerator<string> {
    while (source.made < pieces) {
      source.made += 1;
      yield piece;
    }
    if (fails) throw new Error('the source failed');
  }
  const handle = (): Reply => ({
    status: 200,
    body: '',
    pieces: make(),
    onEnd: () => {
      source.over += 1;
    },
  });
  const route: Route = { method: 'GET', path: '/long', scope: null, body: null, query: null, handle };
  const server = await listenWith([route], noFigures);
  t.after(() => server.close(0));
  return [server, source];
}

function listenWith(
  routes: readonly Route[],
  figures: MetricRegistry,
  maxUnreadBytes?: number,
): Promise<Server> {
  const nobody = { authenticate: () => Promise.reject(new Error('no key is asked for')) };
  return startServer({
    host: '127.0.0.1',
    port: 0,
    sharePort: false,
    routes,
    gate: createGate(nobody, { pass: () => ({}) }),
    figures,
    ...(maxUnreadBytes !== undefined && { maxUnreadBytes }),
    logger: createLogger('silent', 'test'),
  });
}

const request = rawRequest(null, { method: 'GET', path: '/long' });

test('all pieces in their order, and the connection goes on', async (t) => {
  const [{ port }, source] = await serverOf(t, 100, false);
  const wire = openWire(port);
  t.after(() => wire.end());
  wire.send(request);
  assert.equal((await wire.next()).text, piece.repeat(100));
  source.made = 99;
  wire.send(request);
  assert.equal((await wire.next()).text, piece);
  assert.equal(source.over, 2);
});

test('a source that fails ends the connection without the end of the answer', async (t) => {
  const [{ port }, source] = await serverOf(t, 3, true);
  await assert.rejects(exchangeRaw(port, request), /the connection closed; so far: HTTP\/1.1 200 OK/);
  assert.equal(source.over, 1);
});

test('no more is made than a reader takes, who is waited for; one who goes away ends it', async (t) => {
  const [{ port }, source] = await serverOf(t, 100_000, false);
  const wire = openWire(port);
  let read = 0;
  wire.socket.removeAllListeners('data');
  wire.socket.on('data', (chunk) => {
    read += chunk.length;
  });
  wire.socket.pause();
  wire.send(request);
  let made = 0;
  await waitFor('a standstill', async () => {
    made = source.made;
    await sleep(1000);
    return made > 0 && made === source.made;
  });
  const stood = source.made;
  assert.ok(stood < 1000, `${stood} pieces of 64 KiB were made for nobody`);
  wire.socket.resume();
  await waitFor('it goes on', () => read > (stood + 100) * piece.length);
  wire.end();
  await waitFor('its end', () => source.over === 1);
});

/** A server whose routes answer with bodies of so many bytes; unread answers are bounded by `bound`. */
async function serverOfBodies(
  t: TestContext,
  bound: number,
): Promise<{ port: number; unread: () => number; begun: () => number }> {
  const figures: Record<string, () => unknown> = {};
  let begun = 0;
  // The largest is more than the kernel takes of it: as much as tcp_wmem says, 4 MiB by default, and what the reader's has room for.
  const routes = [300, 20_000, 9_000_000].map((bytes): Route => {
    const handle = (): Reply => {
      begun++;
      return { status: 200, body: 'é'.repeat(bytes / 2) };
    };
    return { method: 'GET', path: `/${bytes}`, scope: null, body: null, query: null, handle };
  });
  const server = await listenWith(routes, { add: (name, read) => (figures[name] = read) }, bound);
  t.after(() => server.close(0));
  return { port: server.port, unread: () => Number(figures.unread_answers_bytes?.()), begun: () => begun };
}

const get = (path: string, method = 'GET'): Buffer => rawRequest(null, { method, path });

test('an answer of which the socket takes a part is sent whole, to fast readers and to slow ones', async (t) => {
  const { port, unread } = await serverOfBodies(t, 64 * 1024 * 1024);
  const wire = openWire(port);
  t.after(() => wire.end());
  wire.socket.pause();
  wire.send(get('/9000000'));
  await waitFor('a part', () => unread() > 0);
  wire.socket.resume();
  assert.equal((await wire.next()).text, 'é'.repeat(4_500_000));
  await waitFor('its end', () => unread() === 0);
  wire.send(get('/300'));
  assert.equal((await wire.next()).text.length, 150, 'and the connection goes on');
});

for (const [path, method] of [['/9000000'], ['/20000'], ['/300'], ['/300', 'HEAD'], ['/nothing']] as const) {
  test(`who asks for ${path} (${method ?? 'GET'}) again and again and never reads is cut off`, async (t) => {
    const { port, unread } = await serverOfBodies(t, 64 * 1024 * 1024);
    const wire = openWire(port);
    t.after(() => wire.end());
    standStill(wire);
    const before = process.memoryUsage.rss();
    const timer = setInterval(() => wire.send(Buffer.concat(Array(50).fill(get(path, method)))), 1);
    // A paused socket of Node.js tells its end when it writes.
    wire.socket.on('error', () => clearInterval(timer));
    await wire.closed().finally(() => clearInterval(timer));
    await waitFor('nothing is kept', () => unread() === 0);
    assert.ok(process.memoryUsage.rss() - before < 100e6);
  });
}

for (const [who, headers] of [
  ['who do not read', {}],
  ['who neither read nor send the body that they said', { 'Content-Length': '9' }],
] as const) {
  test(`of many ${who}, those that began first are cut when too much is kept for all`, async (t) => {
    const { port, unread, begun } = await serverOfBodies(t, 20_000_000);
    const wires: Wire[] = [];
    t.after(() => {
      for (const wire of wires) wire.end();
    });
    // One after the other: uWebSockets.js closes a connection that sends nothing for 10 s.
    for (let i = 0; i < 30; i++) {
      const wire = openWire(port);
      wires.push(wire);
      wire.socket.pause();
      wire.send(rawRequest(null, { method: 'GET', path: '/9000000', headers }));
      await waitFor('it begins', () => begun() > i);
    }
    await waitFor('a bound', () => unread() > 14_500_000);
    assert.ok(unread() <= 20_000_000, `${unread()}`);
    const last = wires.at(-1) as Wire;
    last.socket.resume();
    assert.equal((await last.next()).text.trim().length, 4_500_000, 'who came last is served');
    const [first] = wires as [Wire];
    first.socket.resume();
    await assert.rejects(first.next(), /the connection closed/);
  });
}

test('a stop of the server cuts what would not end', async (t) => {
  const [server, source] = await serverOf(t, 100_000_000, false);
  const wire = openWire(server.port);
  wire.socket.removeAllListeners('data');
  wire.socket.pause();
  wire.send(request);
  await waitFor('pieces', () => source.made > 0);
  await server.close(100);
  await waitFor('its end', () => source.over === 1);
  wire.end();
});
