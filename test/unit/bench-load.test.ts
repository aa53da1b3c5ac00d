/** The pure parts of the load generator and of what a benchmark makes of its rounds, and the open loop on a server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createDraws, zipf } from '../../bench/load/draws.js';
import { driveLoad } from '../../bench/load/drive.js';
import { fillNumbers, readPool, writePool } from '../../bench/load/request-pool.js';
import { createResponseReader } from '../../bench/load/response-reader.js';
import { createClosedLoop, createOpenLoop } from '../../bench/load/schedule.js';
import { numberPlaceholder, prepareRequests, usualTraffic } from '../../bench/load/traffic.js';
import { computeRatioSpread, computeSpread } from '../../bench/results/spread.js';
import { seeded } from '../support/builders/random.js';
import { tempDir } from '../support/temp.js';

test('an open loop is due at even times, whatever comes back, and ends after its number of requests', () => {
  const loop = createOpenLoop(200, 2);
  assert.deepEqual([0, 4, 5, 50, 1999, 60_000].map(loop.countDue), [1, 1, 2, 11, 400, 400]);
  assert.deepEqual([0, 1, 399].map(loop.dueAt), [0, 5, 1995]);
  assert.equal(loop.endMs, 2000);
});

test('a closed loop has always something to send until its end, and no due times', () => {
  const loop = createClosedLoop(2);
  assert.deepEqual([0, 1999, 2000].map(loop.countDue), [
    Number.POSITIVE_INFINITY,
    Number.POSITIVE_INFINITY,
    0,
  ]);
  assert.equal(loop.dueAt(5), null);
});

test('a spread has the median and the ends of its rounds, a ratio goes round by round', () => {
  assert.deepEqual(computeSpread([5, 1, 3]), { median: 3, low: 1, high: 5, rounds: 3 });
  assert.deepEqual(computeSpread([4, 1]), { median: 2.5, low: 1, high: 4, rounds: 2 });
  // The machine was twice as slow in the second round: the ratio does not see it.
  assert.deepEqual(computeRatioSpread([6, 12], [3, 6]), { median: 2, low: 2, high: 2, rounds: 2 });
});

test('responses are read from whatever pieces they come in', () => {
  const text = `HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n`;
  const second = text.indexOf('HTTP', 1);
  for (const size of [1, 2, 7, 30, 100]) {
    const statuses: number[] = [];
    const feed = createResponseReader((status) => statuses.push(status));
    for (const answer of [text.slice(0, second), text.slice(second)]) {
      for (let at = 0; at < answer.length; at += size) {
        const piece = Buffer.from(answer.slice(at, at + size));
        feed(piece, piece.length);
      }
    }
    assert.deepEqual(statuses, [200, 503], `pieces of ${size}`);
  }
});

test('requests come back from their files, and each answer gets a number of its own', async (t) => {
  const folder = await tempDir(t);
  writePool(folder, prepareRequests({ ...usualTraffic, batch: 1000, newLearners: true }, 'key').slice(0, 2));
  const [request] = readPool(folder);
  assert.ok(request !== undefined && request.answers === 1000 && request.holes.length === 2000);
  fillNumbers(request, 41);
  const text = request.bytes.toString();
  assert.ok(!text.includes(numberPlaceholder));
  const { events } = JSON.parse(text.slice(text.indexOf('\r\n\r\n')));
  assert.equal(events[0].event_id, 'event-000000000041');
  assert.equal(events[0].user_id, 'new-000000000041');
  assert.equal(events[999].event_id, 'event-000000001040');
  assert.match(text, new RegExp(`Content-Length: ${text.length - text.indexOf('\r\n\r\n') - 4}\r\n`));
});

test('learners come at random, by Zipf’s law, in sittings', () => {
  assert.deepEqual(
    [0, 0.999_999_9].map((share) => zipf(1000, share)),
    [0, 999],
  );
  const counted = (order: 'random' | 'zipf' | 'hot'): number => {
    const draw = createDraws(order, 1000, 50, seeded(1));
    return Array.from({ length: 10_000 }, draw).filter(({ learner }) => learner === 0).length;
  };
  assert.ok(counted('random') < 30 && counted('zipf') > 500 && counted('hot') === 10_000);
  const draw = createDraws('sittings', 1_000_000, 50, seeded(1));
  const learners = new Set(Array.from({ length: 100_000 }, () => draw().learner));
  assert.ok(learners.size > 4500 && learners.size < 5700, `${learners.size} sittings of about 20`);
});

const bytes = Buffer.from('GET / HTTP/1.1\r\nHost: bench\r\n\r\n');

/** @returns the port of a server that ends with the test */
async function serving(t: TestContext, listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const succeed = (response: ServerResponse): void => {
  response.setHeader('Content-Length', 2).end('{}');
};

test('in an open loop a server that stands still delays all that was due meanwhile', async (t) => {
  const stallMs = 300;
  let stall: Promise<void> | undefined;
  const port = await serving(t, async (_, response) => {
    stall ??= sleep(stallMs);
    await stall;
    succeed(response);
  });
  const plan = { port, connections: 2, seconds: 1, rate: 200, pool: '', firstAnswer: 0 };
  const result = await driveLoad(plan, [{ bytes, answers: 0, holes: [] }]);
  assert.equal(result.requests, 200);
  // Two requests met the stall; about 60 were due while it lasted, and waited for 0 to 300 ms.
  assert.ok((result.latency?.p90 ?? 0) > stallMs / 4, JSON.stringify(result.latency));
  assert.ok((result.latency?.max ?? 0) >= stallMs / 2, JSON.stringify(result.latency));
});

test('connections take turns, so that none is idle for so long that a server closes it', async (t) => {
  const used = new Set<number | undefined>();
  const port = await serving(t, ({ socket }, response) => {
    used.add(socket.remotePort);
    succeed(response);
  });
  const plan = { port, connections: 8, seconds: 1, rate: 50, pool: '', firstAnswer: 0 };
  await driveLoad(plan, [{ bytes, answers: 0, holes: [] }]);
  assert.equal(used.size, 8);
});

test('a request that is refused ends the load', async (t) => {
  const port = await serving(t, (_, response) => {
    response.writeHead(503, { 'Content-Length': 0 }).end();
  });
  const plan = { port, connections: 1, seconds: 5, rate: null, pool: '', firstAnswer: 0 };
  await assert.rejects(driveLoad(plan, [{ bytes, answers: 0, holes: [] }]), /status 503/);
});

test('where refusals are an outcome they are counted, and neither as answers nor in the latency', async (t) => {
  let requests = 0;
  const port = await serving(t, (_, response) => {
    requests += 1;
    if (requests % 4 === 0) succeed(response);
    else response.writeHead(503, { 'Content-Length': 0 }).end();
  });
  const plan = { port, connections: 4, seconds: 1, rate: 100, pool: '', firstAnswer: 0, mayRefuse: true };
  const { requests: answered, rejected } = await driveLoad(plan, [{ bytes, answers: 0, holes: [] }]);
  assert.deepEqual([answered, rejected], [25, 75]);
});
