/** The load generator of `npm run bench`. */
import assert from 'node:assert/strict';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { driveLoad } from '../../bench/load/drive.js';
import { fillNumbers, readPool, writePool } from '../../bench/load/request-pool.js';
import { createResponseReader } from '../../bench/load/response-reader.js';
import { createClosedLoop, createOpenLoop } from '../../bench/load/schedule.js';
import { numberPlaceholder, prepareRequests, usualTraffic } from '../../bench/load/traffic.js';
import { listen } from '../support/servers/ports.js';
import { tempDir } from '../support/temp.js';

test('createOpenLoop schedules requests at even times, createClosedLoop whenever a connection is free', () => {
  const loop = createOpenLoop(200, 2);
  assert.deepEqual([0, 4, 5, 50, 1999, 60_000].map(loop.countDue), [1, 1, 2, 11, 400, 400]);
  assert.deepEqual([0, 1, 399].map(loop.dueAt), [0, 5, 1995]);
  assert.equal(loop.endMs, 2000);
  const closed = createClosedLoop(2);
  const endless = Number.POSITIVE_INFINITY;
  assert.deepEqual([0, 1999, 2000].map(closed.countDue), [endless, endless, 0]);
  assert.equal(closed.dueAt(5), null);
});

test('createResponseReader reads responses from chunks of any size', () => {
  const texts = [
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    'HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n',
  ];
  for (const size of [1, 2, 7, 30, 100]) {
    const statuses: number[] = [];
    const feed = createResponseReader((status) => statuses.push(status));
    for (const text of texts)
      for (let at = 0; at < text.length; at += size) {
        const piece = Buffer.from(text.slice(at, at + size));
        feed(piece, piece.length);
      }
    assert.deepEqual(statuses, [200, 503], `chunks of ${size}`);
  }
});

test('readPool returns the written requests, and fillNumbers gives each answer a unique number', async (t) => {
  const folder = await tempDir(t);
  writePool(folder, prepareRequests({ ...usualTraffic, batch: 1000, newLearners: true }, 'key').slice(0, 2));
  const [request] = readPool(folder);
  assert.ok(request !== undefined && request.answers === 1000 && request.holes.length === 2000);
  fillNumbers(request, 41);
  const text = request.bytes.toString();
  assert.ok(!text.includes(numberPlaceholder));
  const body = text.slice(text.indexOf('\r\n\r\n') + 4);
  const { events } = JSON.parse(body);
  const found = [events[0].event_id, events[0].user_id, events[999].event_id];
  assert.deepEqual(found, ['event-000000000041', 'new-000000000041', 'event-000000001040']);
  assert.match(text, new RegExp(`Content-Length: ${body.length}\r\n`));
});

const request = { bytes: Buffer.from('GET / HTTP/1.1\r\nHost: bench\r\n\r\n'), answers: 0, holes: [] };
const succeed = (response: ServerResponse): void => {
  response.setHeader('Content-Length', 2).end('{}');
};
const reject = (response: ServerResponse): void => {
  response.writeHead(503, { 'Content-Length': 0 }).end();
};

interface Load {
  readonly connections: number;
  readonly seconds: number;
  readonly rate: number | null;
  readonly mayRefuse?: boolean;
}

/** Sends the load to a server with the listener. */
async function drive(t: TestContext, load: Load, listener: RequestListener) {
  const port = await listen(t, createServer(listener));
  return driveLoad({ port, pool: '', firstAnswer: 0, ...load }, [request]);
}

test('driveLoad includes the time in which requests of an open loop wait for a stalled server', async (t) => {
  const stallMs = 300;
  let stall: Promise<void> | undefined;
  const load = { connections: 2, seconds: 1, rate: 200 };
  const { requests, latency } = await drive(t, load, async (_, response) => {
    stall ??= sleep(stallMs);
    await stall;
    succeed(response);
  });
  assert.equal(requests, 200);
  // Two requests met the stall; about 60 were due while it lasted, and waited for 0 to 300 ms.
  assert.ok((latency?.p90 ?? 0) > stallMs / 4, JSON.stringify(latency));
  assert.ok((latency?.max ?? 0) >= stallMs / 2, JSON.stringify(latency));
});

test('driveLoad uses its connections in turn, before a server closes an idle one', async (t) => {
  const ports = new Set<number | undefined>();
  await drive(t, { connections: 8, seconds: 1, rate: 50 }, ({ socket }, response) => {
    ports.add(socket.remotePort);
    succeed(response);
  });
  assert.equal(ports.size, 8);
});

test('driveLoad rejects on a failed response, or counts it apart if the load may be rejected', async (t) => {
  const failed = drive(t, { connections: 1, seconds: 5, rate: null }, (_, response) => reject(response));
  await assert.rejects(failed, /status 503/);
  let requests = 0;
  const load = { connections: 4, seconds: 1, rate: 100, mayRefuse: true };
  const { requests: answered, rejected } = await drive(t, load, (_, response) => {
    requests += 1;
    if (requests % 4 === 0) succeed(response);
    else reject(response);
  });
  assert.deepEqual([answered, rejected], [25, 75]);
});
