/** Streamed and large responses: slow readers, clients that disconnect, failing sources, and the memory of unread bytes. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Reply } from '../../src/http/route.js';
import type { MetricRegistry } from '../../src/services/operations/metric-registry.js';
import { exchangeRaw, openWire, rawRequest, type Wire } from '../support/http/http.js';
import { startRoutes } from '../support/http/route-server.js';
import { waitFor } from '../support/wait.js';

const piece = `${'x'.repeat(64 * 1024 - 1)}\n`;
const get = (path: string, method = 'GET'): Buffer => rawRequest(null, { method, path });

/** A server that streams so many pieces, and then perhaps fails. */
async function startStream(t: TestContext, pieces: number, fails = false) {
  const source = { created: 0, ended: 0 };
  async function* createPieces(): AsyncGenerator<string> {
    while (source.created < pieces) {
      source.created += 1;
      yield piece;
    }
    if (fails) throw new Error('the source failed');
  }
  const onEnd = (): void => {
    source.ended += 1;
  };
  const handle = (): Reply => ({ status: 200, body: '', pieces: createPieces(), onEnd });
  const server = await startRoutes(t, { '/long': handle });
  return { server, source };
}

function openClient(t: TestContext, { port }: { port: number }): Wire {
  const wire = openWire(port);
  t.after(() => wire.end());
  return wire;
}

function stopReading({ socket }: Wire): void {
  socket.removeAllListeners('data');
  socket.pause();
}

test('A stream sends all pieces in order and keeps the connection open', async (t) => {
  const { server, source } = await startStream(t, 100);
  const wire = openClient(t, server);
  wire.send(get('/long'));
  assert.equal((await wire.next()).text, piece.repeat(100));
  source.created = 99;
  wire.send(get('/long'));
  assert.equal((await wire.next()).text, piece);
  assert.equal(source.ended, 2);
});

test('A response stream closes the connection before its end if the source fails', async (t) => {
  const { server, source } = await startStream(t, 3, true);
  const cutOff = /the connection closed; so far: HTTP\/1.1 200 OK/;
  await assert.rejects(exchangeRaw(server.port, get('/long')), cutOff);
  assert.equal(source.ended, 1);
});

test('A stream waits for a slow reader and ends when the client disconnects', async (t) => {
  const { server, source } = await startStream(t, 100_000);
  const wire = openClient(t, server);
  stopReading(wire);
  let read = 0;
  wire.socket.on('data', (chunk) => {
    read += chunk.length;
  });
  wire.socket.pause();
  wire.send(get('/long'));
  await waitFor('a pause', async () => {
    const before = source.created;
    await sleep(500);
    return before > 0 && before === source.created;
  });
  const created = source.created;
  assert.ok(created < 1000, `${created} pieces of 64 KiB are in memory`);
  wire.socket.resume();
  await waitFor('more pieces', () => read > (created + 100) * piece.length);
  wire.end();
  await waitFor('the end of the source', () => source.ended === 1);
});

test('A server that stops closes streams that do not end', async (t) => {
  const { server, source } = await startStream(t, 100_000_000);
  const wire = openClient(t, server);
  stopReading(wire);
  wire.send(get('/long'));
  await waitFor('pieces', () => source.created > 0);
  let isClosed = false;
  const first = server.close(100).finally(() => {
    isClosed = true;
  });
  await Promise.all([
    first,
    server.close(0).then(() => assert.ok(isClosed, 'a later call waits for the first')),
  ]);
  await waitFor('the end of the source', () => source.ended === 1);
});

/** More than the kernel buffers of both sides, 4 MiB by default in tcp_wmem. */
const largeBytes = 9_000_000;

/** A server with bodies of 300, 20,000 and 9,000,000 bytes. */
async function startBodies(t: TestContext, maxUnreadBytes?: number) {
  const figures: Record<string, () => unknown> = {};
  let handled = 0;
  const respond = (bytes: number) => (): Reply => {
    handled++;
    return { status: 200, body: 'é'.repeat(bytes / 2) };
  };
  const handlers = [300, 20_000, largeBytes].map((bytes) => [`/${bytes}`, respond(bytes)] as const);
  const registry: MetricRegistry = { add: (name, read) => (figures[name] = read) };
  const server = await startRoutes(t, Object.fromEntries(handlers), registry, maxUnreadBytes);
  const countUnread = () => Number(figures.unread_answers_bytes?.());
  return { server, countUnread, countHandled: () => handled };
}

test('A large response reaches a slow reader completely and keeps the connection open', async (t) => {
  const { server, countUnread } = await startBodies(t);
  const wire = openClient(t, server);
  wire.socket.pause();
  wire.send(get(`/${largeBytes}`));
  await waitFor('unread bytes', () => countUnread() > 0);
  wire.socket.resume();
  assert.equal((await wire.next()).text, 'é'.repeat(largeBytes / 2));
  await waitFor('the end', () => countUnread() === 0);
  wire.send(get('/300'));
  assert.equal((await wire.next()).text.length, 150);
});

for (const [path, method] of [[`/${largeBytes}`], ['/20000'], ['/300', 'HEAD'], ['/nothing']] as const) {
  test(`The server disconnects a client that sends ${method ?? 'GET'} ${path} again and again and reads nothing`, async (t) => {
    const { server, countUnread } = await startBodies(t);
    const wire = openClient(t, server);
    stopReading(wire);
    const before = process.memoryUsage.rss();
    const requests = Buffer.concat(Array(50).fill(get(path, method)));
    const timer = setInterval(() => wire.send(requests), 1);
    // A paused socket reports its end when it writes.
    wire.socket.on('error', () => clearInterval(timer));
    await wire.closed().finally(() => clearInterval(timer));
    await waitFor('released memory', () => countUnread() === 0);
    assert.ok(process.memoryUsage.rss() - before < 100e6);
  });
}

test('The server cuts the oldest unread responses above the limit of memory, and serves the newest', async (t) => {
  // A client that announces a body and sends none is no exception.
  for (const headers of [{}, { 'Content-Length': '9' }]) {
    const { server, countUnread, countHandled } = await startBodies(t, 20_000_000);
    const wires: Wire[] = [];
    // One by one: uWebSockets.js closes a connection that sends nothing for 10 s.
    for (let i = 0; i < 8; i++) {
      const wire = openClient(t, server);
      wires.push(wire);
      wire.socket.pause();
      wire.send(rawRequest(null, { method: 'GET', path: `/${largeBytes}`, headers }));
      await waitFor('the response', () => countHandled() > i);
    }
    await waitFor('unread bytes', () => countUnread() > 14_500_000);
    assert.ok(countUnread() <= 20_000_000, `${countUnread()}`);
    const [first, last] = [wires[0], wires.at(-1)] as [Wire, Wire];
    last.socket.resume();
    assert.equal((await last.next()).text.trim().length, largeBytes / 2);
    first.socket.resume();
    await assert.rejects(first.next(), /the connection closed/);
  }
});
