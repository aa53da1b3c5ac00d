/** The live stream: its figures while answers are posted, who gets it, and when it ends. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { allScopes } from '../../src/contracts/access/access.js';
import { callerOf, event, openWire, rawRequest } from '../support/http/http.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { launchService } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const operatorKey = await keys.add({ scopes: allScopes });
const caller = callerOf(service, operatorKey);

interface Figures {
  readonly at: string;
  readonly answers_per_second: number | null;
  readonly errors: Readonly<Record<string, number>> | null;
  readonly latency_ms: { readonly p50: number; readonly p90: number; readonly p99: number } | null;
  readonly processes: number;
  readonly [name: string]: unknown;
}

/** Reads a stream in the background. */
async function look(t: TestContext, port: number, key: string, query = '') {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/live${query}`, {
    headers: { 'X-API-Key': key },
    signal: stop.signal,
  });
  const seen: Figures[] = [];
  let isOver = false;
  const read = async (): Promise<void> => {
    let text = '';
    for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const events = `${text}${piece}`.split('\n\n');
      text = events.pop() ?? '';
      for (const one of events) seen.push(JSON.parse(one.replace(/^data: /, '')));
    }
  };
  void (answer.ok ? read() : (answer.body?.cancel() ?? Promise.resolve()))
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
    });
  const until = async (what: string, holds: (figures: Figures) => boolean): Promise<Figures> => {
    await waitFor(what, () => seen.some(holds));
    return seen.find(holds) as Figures;
  };
  const isCut = (): boolean => isOver;
  return {
    status: answer.status,
    headers: answer.headers,
    seen,
    until,
    isOver: isCut,
    leave: () => stop.abort(),
  };
}

/** Posts answers, and one that is none, until the test has seen enough. */
async function whilePosting<Value>(work: () => Promise<Value>): Promise<Value> {
  let isDone = false;
  const posting = (async () => {
    while (!isDone) {
      assert.equal((await caller.track(event())).status, 200);
      assert.equal((await caller.track({ user_id: 'nobody' })).status, 400);
      await sleep(50);
    }
  })();
  const seen = await work().finally(() => {
    isDone = true;
  });
  await posting;
  return seen;
}

test('figures while answers are posted', async (t) => {
  const stream = await look(t, service.port, operatorKey);
  assert.equal(stream.status, 200);
  assert.equal(stream.headers.get('content-type'), 'text/event-stream');
  assert.equal(stream.headers.get('cache-control'), 'no-store');
  await waitFor('an event at once', () => stream.seen.length > 0);
  const told = await whilePosting(() =>
    stream.until(
      'rates',
      ({ answers_per_second: answers, errors }) => (answers ?? 0) > 0 && (errors?.['400'] ?? 0) > 0,
    ),
  );
  const { p50, p90, p99 } = told.latency_ms ?? { p50: 0, p90: 0, p99: 0 };
  assert.ok(p50 > 0 && p50 <= p90 && p90 <= p99, JSON.stringify(told));
  assert.ok((told.requests_per_second as number) >= (told.answers_per_second ?? 0));
  assert.deepEqual([told.processes, told.redis_up, told.clickhouse_up], [1, true, true]);
  assert.ok((told.redis_memory as { used: number }).used > 0 && (told.connections_open as number) > 0);
  for (const name of [
    'outbox_length',
    'oldest_pending_seconds',
    'journal_length',
    'parked_rows',
    'lanes_waiting',
  ])
    assert.equal(typeof told[name], 'number', name);
});

test('however many look, one sample a second is taken for all', async (t) => {
  const [one, other] = await Promise.all([
    look(t, service.port, operatorKey, '?events=3'),
    look(t, service.port, operatorKey, '?events=3'),
  ]);
  await waitFor('the end of both', () => one.isOver() && other.isOver());
  assert.deepEqual([one.seen.length, other.seen.length], [3, 3]);
  const both = one.seen.flatMap((figures) => {
    const same = other.seen.find(({ at }) => at === figures.at);
    return same === undefined ? [] : [[figures, same] as const];
  });
  assert.ok(both.length >= 2, 'at most one of the three was taken before the other came');
  for (const [figures, same] of both) assert.deepEqual(figures, same);
  const times = one.seen.map(({ at }) => at);
  assert.equal(new Set(times).size, times.length, 'each is another');
});

test('twenty look on, no more; whoever goes makes room', async (t) => {
  const streams = await Promise.all(Array.from({ length: 20 }, () => look(t, service.port, operatorKey)));
  assert.deepEqual(new Set(streams.map(({ status }) => status)), new Set([200]));
  const refused = await caller.call({ method: 'GET', path: '/api/v1/live' });
  assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1']);
  streams[0]?.leave();
  await waitFor(
    'room',
    async () => (await caller.raw({ method: 'GET', path: '/api/v1/live?events=1' })).status === 200,
  );
  for (const { leave } of streams) leave();
  const { text } = await callerOf(service, null).raw({ method: 'GET', path: '/metrics' });
  const sum = (name: string): number =>
    text
      .split('\n')
      .filter((line) => line.startsWith(name) && line.includes('route="/api/v1/live"'))
      .reduce((all, line) => all + Number(line.split(' ').at(-1)), 0);
  const [requests, timed] = [
    sum('skilltrace_http_requests_total'),
    sum('skilltrace_http_request_duration_seconds_count'),
  ];
  assert.ok(
    timed >= 1 && requests > timed,
    `of ${requests} requests ${timed} have a time: those that were refused`,
  );
});

test('a stream is one request of the quota, HEAD sends none, and a count has bounds', async () => {
  const few = callerOf(service, await keys.add({ scopes: allScopes, quota: 2 }));
  const answer = await few.raw({ method: 'GET', path: '/api/v1/live?events=2' });
  assert.equal(answer.text.match(/^data: /gm)?.length, 2);
  assert.match(answer.headers.ratelimit ?? '', /;r=1;/);
  assert.equal((await few.head('/api/v1/live')).headers['content-type'], 'text/event-stream');
  assert.equal((await few.raw({ method: 'GET', path: '/api/v1/live?events=1' })).status, 429);
  for (const count of ['0', '86401', 'x'])
    assert.equal((await caller.get(`/api/v1/live?events=${count}`)).status, 400, count);
});

test('a key that is revoked meanwhile ends its streams, and no others', async (t) => {
  const key = await keys.add({ scopes: ['operator'] });
  const [ended, goesOn] = await Promise.all([look(t, service.port, key), look(t, service.port, operatorKey)]);
  await waitFor('events', () => ended.seen.length > 0);
  assert.ok(await keys.revoke(key));
  await waitFor('the end', ended.isOver, 5000);
  assert.ok(!goesOn.isOver());
});

test('a stop ends streams at once, those that nobody reads with them', { timeout: 120_000 }, async (t) => {
  const dir = await tempDir(t);
  const running = await launchService(t, {
    ...{ DATA_DIR: dir, ROLE: 'api', API_PROCESSES: '2', LOG_LEVEL: 'silent' },
    ...{ REDIS_URL: service.redisUrl, CLICKHOUSE_URL: service.clickhouseUrl },
  });
  const streams = await Promise.all(Array.from({ length: 4 }, () => look(t, running.port, operatorKey)));
  const [first] = streams;
  const told = await first?.until('both processes', ({ processes }) => processes === 2);
  assert.deepEqual([told?.redis_up, told?.clickhouse_up], [true, true]);
  const unread = openWire(running.port);
  t.after(() => unread.end());
  unread.socket.pause();
  unread.send(rawRequest(operatorKey, { method: 'GET', path: '/api/v1/live' }));
  const since = performance.now();
  await running.stop();
  assert.ok(performance.now() - since < 10_000, 'within 10 s');
  await waitFor('the ends of streams', () => streams.every(({ isOver }) => isOver()));
  assert.equal(running.child.exitCode, 0);
});
