/** The load generator of `npm run bench`. */
import assert from 'node:assert/strict';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { driveLoad } from '../../bench/load/drive.js';
import { mergeResults } from '../../bench/load/load-runner.js';
import { createLocalEndpoint } from '../../bench/load/plan.js';
import { createResponseReader } from '../../bench/load/response-reader.js';
import { createClosedLoop, createOpenLoop } from '../../bench/load/schedule.js';
import { createRequestSource, learnerId, type Traffic, usualTraffic } from '../../bench/load/traffic.js';
import { learningEventCheck } from '../../src/contracts/answers/events.js';
import { computeSum, indices } from '../../src/lists.js';
import { listen } from '../support/servers/ports.js';

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

test('Open loops of several threads send as many requests as one', () => {
  for (const [rate, threads] of [
    [100, 3],
    [2, 5],
    [1, 8],
  ] as const)
    for (const seconds of [1, 5, 7]) {
      const loops = indices(threads).map((i) => createOpenLoop(rate / threads, seconds, i / threads));
      assert.equal(computeSum(loops.map(({ countDue }) => countDue(60_000))), rate * seconds);
    }
});

test('createResponseReader reads responses with a length or in chunks, from pieces of any size', () => {
  const texts = [
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    'HTTP/1.1 503 No\r\ncontent-length: 2\r\nConnection: close\r\n\r\nno',
    'HTTP/1.1 207 Some\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0a;x=1\r\n0123456789\r\n0\r\n\r\n',
    'HTTP/1.1 204 None\r\n\r\n',
  ];
  for (const size of [1, 2, 7, 30, 1000]) {
    const found: [number, string, boolean][] = [];
    const feed = createResponseReader(({ status, body, isLast }) => found.push([status, body, isLast]));
    for (const text of texts)
      for (let at = 0; at < text.length; at += size) {
        const piece = Buffer.from(text.slice(at, at + size));
        feed(piece, piece.length);
      }
    const expected = [
      ...[
        [200, '', false],
        [503, 'no', true],
      ],
      ...[
        [207, 'abc0123456789', false],
        [204, '', false],
      ],
    ];
    assert.deepEqual(found, expected, `pieces of ${size}`);
  }
  const feed = createResponseReader(() => assert.fail());
  assert.throws(() => feed(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), 19), /without a length/);
});

test('createRequestSource returns the same requests for the same seed, and valid answers with unique ids', () => {
  const traffic = { ...usualTraffic, learners: 90, batch: 3, items: 2, prefix: 'p-', skillPrefix: 's-' };
  const create = (seed: number, change: Partial<Traffic> = {}) => {
    let number = 7;
    const next = createRequestSource({ ...traffic, ...change }, seed, () => number++);
    return indices(20).map(() => next());
  };
  assert.deepEqual(create(1), create(1));
  assert.notDeepEqual(create(1), create(2));
  const requests = create(1);
  const events = requests.flatMap(({ body }) => JSON.parse(body as string).events);
  assert.equal(new Set(events.map(({ event_id }) => event_id)).size, 60);
  for (const event of events) assert.ok(learningEventCheck.Check(event), JSON.stringify(event));
  const learners = requests.flatMap((request) => request.learners.map((learner) => learnerId(learner, 'p-')));
  assert.deepEqual(
    learners,
    events.map(({ user_id }) => user_id),
  );
  const several = create(1, { batch: 1, skillsPerAnswer: 3, eventIds: false })[0];
  const { skill_ids, event_id } = JSON.parse(several?.body as string);
  assert.deepEqual([new Set(skill_ids).size, event_id], [3, undefined]);
  const [page, next] = create(1, { kind: 'class' });
  assert.deepEqual([page?.path, next?.path], ['mastery', 'predictions']);
  assert.equal(JSON.parse(page?.body as string).user_ids.length, 30);
});

const succeed = (response: ServerResponse): void => {
  response.setHeader('Content-Length', 2).end('{}');
};
const reject = (response: ServerResponse): void => {
  const body = '{"success":false,"error":{"code":"UNAVAILABLE"}}';
  response.writeHead(503, { 'Content-Length': body.length }).end(body);
};

interface Load {
  readonly connections: number;
  readonly seconds: number;
  readonly rate: number | null;
  readonly failsFast?: boolean;
  readonly isBurst?: boolean;
  readonly graceMs?: number;
}

/** Sends the load to a server with the listener. */
async function drive(t: TestContext, load: Load, listener: RequestListener) {
  const endpoint = createLocalEndpoint(await listen(t, createServer(listener)), 'key');
  const plan = {
    endpoint,
    traffic: { ...usualTraffic, learners: 10 },
    seed: 1,
    firstAnswer: 0,
    thread: 0,
    threads: 1,
  };
  const result = await driveLoad({ ...plan, failsFast: true, graceMs: 20_000, ...load });
  return mergeResults([result], load);
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
  assert.ok(latency.p90 > stallMs / 4, JSON.stringify(latency));
  assert.ok(latency.max >= stallMs / 2, JSON.stringify(latency));
});

test('driveLoad uses its connections in turn, before a server closes an idle one', async (t) => {
  const ports = new Set<number | undefined>();
  await drive(t, { connections: 8, seconds: 1, rate: 50 }, ({ socket }, response) => {
    ports.add(socket.remotePort);
    succeed(response);
  });
  assert.equal(ports.size, 8);
});

test('driveLoad sends a burst at the start of each second, and counts latency from then', async (t) => {
  const { requests, latency } = await drive(
    t,
    { connections: 1, seconds: 2, rate: 20, isBurst: true },
    (_, response) => setTimeout(() => succeed(response), 10),
  );
  assert.equal(requests, 40);
  // One connection: the last of 20 requests waits for 19 others.
  assert.ok(latency.max >= 190, JSON.stringify(latency));
});

test('driveLoad rejects on a failed response, or counts failures by code, and reports uncertain answers', async (t) => {
  const failed = drive(t, { connections: 1, seconds: 5, rate: null }, (_, response) => reject(response));
  await assert.rejects(failed, /^Error: 503 UNAVAILABLE for track-answer \{/);
  let responses = 0;
  const load = { connections: 4, seconds: 1, rate: 100, failsFast: false };
  const { requests, errors, operations, unsettled, acknowledged, answers } = await drive(
    t,
    load,
    ({ socket }, response) => {
      responses += 1;
      if (responses % 4 === 0) socket.destroy();
      else if (responses % 4 === 1) reject(response);
      else if (responses % 4 === 2) response.writeHead(400, { 'Content-Length': 0 }).end();
      else succeed(response);
    },
  );
  assert.deepEqual([requests, errors, answers], [25, 75, 25]);
  const reasons = Object.fromEntries(operations.get('answer')?.errors ?? []);
  assert.deepEqual(reasons, { '503 UNAVAILABLE': 25, '400': 25, 'the server closed a connection': 25 });
  assert.equal(unsettled.length, 50, 'a 400 is certain');
  assert.equal(computeSum([...acknowledged]), 25);
});

test('driveLoad counts requests without a response, and due requests that it could not send', async (t) => {
  const load = { connections: 2, seconds: 1, rate: 10, failsFast: false, graceMs: 200 };
  const { requests, errors, operations, unsettled } = await drive(t, load, () => undefined);
  assert.deepEqual([requests, errors, unsettled.length], [0, 10, 2]);
  const reasons = Object.fromEntries(operations.get('answer')?.errors ?? []);
  assert.deepEqual(reasons, { 'no response at the end': 2, 'not sent: all connections were busy': 8 });
  // 10,000,000 requests, too many to create.
  const huge = await drive(t, { ...load, rate: 10_000_000 }, () => undefined);
  assert.deepEqual([huge.errors, huge.unsettled.length], [10_000_000, 2]);
  assert.ok(huge.numbersUsed < 10);
});
