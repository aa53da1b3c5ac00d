/** GET /api/v1/live: metrics, limits, and the end of streams. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { LiveFigures } from '../../src/client/types.js';
import { allScopes } from '../../src/contracts/access/access.js';
import { callerOf, event, openWire, rawRequest } from '../support/http/http.js';
import { keysOf, sharedService } from '../support/servers/service.js';
import { launchService } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';
import { askUntil, waitFor } from '../support/wait.js';

const service = await sharedService();
const keys = await keysOf({ after }, service);
const operatorKey = await keys.add({ scopes: allScopes });
const caller = callerOf(service, operatorKey);

/** Reads a stream in the background until it ends or the test does. */
async function openStream(t: TestContext, port: number, key: string, query = '') {
  const closing = new AbortController();
  t.after(() => closing.abort());
  const { ok, status, headers, body } = await fetch(`http://127.0.0.1:${port}/api/v1/live${query}`, {
    headers: { 'X-API-Key': key },
    signal: closing.signal,
  });
  const received: LiveFigures[] = [];
  let hasEnded = false;
  const read = async (): Promise<void> => {
    let text = '';
    for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const events = `${text}${piece}`.split('\n\n');
      text = events.pop() ?? '';
      for (const one of events) received.push(JSON.parse(one.replace(/^data: /, '')));
    }
  };
  void (ok ? read() : (body?.cancel() ?? Promise.resolve()))
    .catch(() => undefined)
    .finally(() => {
      hasEnded = true;
    });
  return {
    ...{ status, headers, received },
    hasEnded: (): boolean => hasEnded,
    close: () => closing.abort(),
  };
}

test('The live stream reports rates, latencies and gauges of the deployment', async (t) => {
  const stream = await openStream(t, service.port, operatorKey);
  assert.equal(stream.status, 200);
  assert.equal(stream.headers.get('content-type'), 'text/event-stream');
  assert.equal(stream.headers.get('cache-control'), 'no-store');
  await waitFor('the first event', () => stream.received.length > 0);
  const isComplete = ({ answers_per_second: answers, errors }: LiveFigures) =>
    (answers ?? 0) > 0 && (errors?.['400'] ?? 0) > 0;
  await waitFor('rates', async () => {
    assert.equal((await caller.track(event())).status, 200);
    assert.equal((await caller.track({ user_id: 'incomplete' })).status, 400);
    return stream.received.some(isComplete);
  });
  const metrics = stream.received.find(isComplete) as LiveFigures;
  const { p50, p90, p99 } = metrics.latency_ms ?? { p50: 0, p90: 0, p99: 0 };
  assert.ok(p50 > 0 && p50 <= p90 && p90 <= p99, JSON.stringify(metrics));
  assert.ok((metrics.requests_per_second ?? 0) >= (metrics.answers_per_second ?? 0));
  assert.deepEqual([metrics.processes, metrics.redis_up, metrics.clickhouse_up], [1, true, true]);
  const { redis_memory, connections_open, outbox_length, oldest_pending_seconds, ...others } = metrics;
  assert.ok((redis_memory?.used ?? 0) > 0 && (connections_open ?? 0) > 0);
  const gauges = [outbox_length, oldest_pending_seconds, others.journal_length, others.parked_rows];
  assert.ok([...gauges, others.lanes_waiting].every((value) => typeof value === 'number'));
});

test('All live streams get the same sample, one per second', async (t) => {
  const [one, other] = await Promise.all([
    openStream(t, service.port, operatorKey, '?events=3'),
    openStream(t, service.port, operatorKey, '?events=3'),
  ]);
  await waitFor('the end of both', () => one.hasEnded() && other.hasEnded());
  assert.deepEqual([one.received.length, other.received.length], [3, 3]);
  const shared = one.received.filter(({ at }) => other.received.some((sample) => sample.at === at));
  assert.ok(shared.length >= 2, 'at most one sample precedes the second stream');
  for (const sample of shared) assert.ok(other.received.some((one) => isDeepStrictEqual(one, sample)));
  assert.equal(new Set(one.received.map(({ at }) => at)).size, 3);
});

test('The service opens 20 live streams, rejects more, and reports no duration of streams', async (t) => {
  const streams = await Promise.all(
    Array.from({ length: 20 }, () => openStream(t, service.port, operatorKey)),
  );
  assert.ok(streams.every(({ status }) => status === 200));
  const rejected = await caller.call({ method: 'GET', path: '/api/v1/live' });
  assert.deepEqual([rejected.status, rejected.headers['retry-after']], [503, '1']);
  streams[0]?.close();
  const openOne = () => caller.raw({ method: 'GET', path: '/api/v1/live?events=1' });
  await waitFor('a free stream', async () => (await openOne()).status === 200);
  for (const { close } of streams) close();
  const { text } = await callerOf(service, null).raw({ method: 'GET', path: '/metrics' });
  const sum = (name: string): number =>
    text
      .split('\n')
      .filter((line) => line.startsWith(name) && line.includes('route="/api/v1/live"'))
      .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
  const requests = sum('skilltrace_http_requests_total');
  const timed = sum('skilltrace_http_request_duration_seconds_count');
  assert.ok(timed >= 1 && requests > timed, `${requests} requests, ${timed} durations: those of rejections`);
});

test('A live stream is one request of the quota, and its number of events has limits', async () => {
  const limited = callerOf(service, await keys.add({ scopes: allScopes, quota: 2 }));
  const { text, headers } = await limited.raw({ method: 'GET', path: '/api/v1/live?events=2' });
  assert.equal(text.match(/^data: /gm)?.length, 2);
  assert.match(headers.ratelimit ?? '', /;r=1;/);
  assert.equal((await limited.head('/api/v1/live')).headers['content-type'], 'text/event-stream');
  assert.equal((await limited.raw({ method: 'GET', path: '/api/v1/live?events=1' })).status, 429);
  for (const count of ['0', '86401', 'x'])
    assert.equal((await caller.get(`/api/v1/live?events=${count}`)).status, 400, count);
});

test('A live stream ends when its key is revoked', async (t) => {
  const key = await keys.add({ scopes: ['operator'] });
  const [revoked, other] = await Promise.all([
    openStream(t, service.port, key),
    openStream(t, service.port, operatorKey),
  ]);
  await waitFor('an event', () => revoked.received.length > 0);
  assert.ok(await keys.revoke(key));
  await waitFor('the end', revoked.hasEnded, 30_000);
  assert.ok(!other.hasEnded());
});

test('A service that stops ends its live streams, also those that no client reads', {
  timeout: 120_000,
}, async (t) => {
  const running = await launchService(t, {
    ...{ DATA_DIR: await tempDir(t), ROLE: 'api', API_PROCESSES: '2', LOG_LEVEL: 'silent' },
    ...{ REDIS_URL: service.redisUrl, CLICKHOUSE_URL: service.clickhouseUrl },
  });
  const streams = await Promise.all(
    Array.from({ length: 4 }, () => openStream(t, running.port, operatorKey)),
  );
  const newest = async () => streams[0]?.received.at(-1);
  const metrics = await askUntil('both processes', newest, (one) => one?.processes === 2);
  assert.deepEqual([metrics?.redis_up, metrics?.clickhouse_up], [true, true]);
  const unread = openWire(running.port);
  t.after(() => unread.end());
  unread.socket.pause();
  unread.send(rawRequest(operatorKey, { method: 'GET', path: '/api/v1/live' }));
  const since = performance.now();
  await running.stop();
  assert.ok(performance.now() - since < 10_000, 'the shutdown takes longer than 10 s');
  await waitFor('the end of the streams', () => streams.every(({ hasEnded }) => hasEnded()));
  assert.equal(running.child.exitCode, 0);
});
