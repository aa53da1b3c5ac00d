/** Answers sent piece by piece: to slow readers, to those who go away, and when the source fails. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGate } from '../../src/http/gate.js';
import { createRequestFigures } from '../../src/http/request-figures.js';
import type { Reply, Route } from '../../src/http/routes.js';
import { type Server, startServer } from '../../src/http/server.js';
import { createUnreadAnswers } from '../../src/http/unread-answers.js';
import { createLogger } from '../../src/telemetry.js';
import { exchangeRaw, openWire, rawRequest } from '../support/http.js';
import { waitFor } from '../support/wait.js';

const noFigures = { add: () => undefined };
const piece = `${'x'.repeat(64 * 1024 - 1)}\n`;

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
    onOver: () => {
      source.over += 1;
    },
  });
  const route: Route = { method: 'GET', path: '/long', scope: null, body: null, queryNames: [], handle };
  const nobody = { authenticate: () => Promise.reject(new Error('no key is asked for')) };
  const gate = createGate(nobody, { pass: () => ({}) });
  const figures = createRequestFigures(noFigures);
  const logger = createLogger('silent', 'test');
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    sharePort: false,
    routes: [route],
    gate,
    figures,
    unread: createUnreadAnswers(noFigures),
    logger,
  });
  t.after(() => server.close(0));
  return [server, source];
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
