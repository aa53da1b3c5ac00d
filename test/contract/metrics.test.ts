/** GET /metrics: the Prometheus text format, without a key, without anything that callers choose. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { callerOf, event } from '../support/http/http.js';
import { exitAfterTests } from '../support/servers/linger.js';
import { redisOf, startService } from '../support/servers/service.js';
import { askUntil } from '../support/wait.js';

const service = await startService({ after });
const caller = callerOf(service, service.key);
const stranger = callerOf(service, null);

exitAfterTests();

const scrape = async (): Promise<string> => (await stranger.raw({ method: 'GET', path: '/metrics' })).text;

/** Value of the line that begins so; NaN where there is none. */
const figureAt = (text: string, start: string): number =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${start} `))
      ?.slice(start.length + 1),
  );

const outcome = (name: string): string => `skilltrace_answers_total{outcome="${name}",process="all"}`;
const requests = (route: string, method: string, status: number): string =>
  `skilltrace_http_requests_total{method="${method}",route="${route}",status="${status}",process="all"}`;

test('answers by outcome and requests by route and status are counted', async () => {
  const first = event({ user_id: 'nobody-in-a-label', event_id: 'counted-once' });
  assert.equal((await caller.track(first)).status, 200);
  assert.equal((await caller.track(first)).status, 200);
  assert.equal((await caller.track({ ...first, is_correct: false })).status, 422);
  assert.equal((await caller.trackAll([event(), event(), { user_id: 'x' }])).status, 207);
  await caller.get('/api/v1/mastery/nobody-in-a-label');
  await caller.get('/no/such/nobody-in-a-label');
  const text = await scrape();
  const outcomes = ['counted', 'replayed', 'reused', 'invalid'].map((name) => figureAt(text, outcome(name)));
  assert.deepEqual(outcomes, [3, 1, 1, 1]);
  assert.equal(figureAt(text, requests('/api/v1/track-answer', 'POST', 200)), 2);
  assert.equal(figureAt(text, requests('/api/v1/track-answer', 'POST', 422)), 1);
  assert.equal(figureAt(text, requests('/api/v1/track-answers', 'POST', 207)), 1);
  assert.equal(figureAt(text, requests('/api/v1/mastery/:user_id', 'GET', 200)), 1);
  assert.doesNotMatch(text, /nobody-in-a-label|counted-once|test-key|default/);
});

test('the latency histogram grows from bucket to bucket up to its count', async () => {
  const text = await scrape();
  const buckets = [
    ...text.matchAll(
      /^skilltrace_http_request_duration_seconds_bucket\{method="POST",route="\/api\/v1\/track-answer",le="([^"]+)",process="all"\} (\d+)$/gm,
    ),
  ];
  const counts = buckets.map(([, , count]) => Number(count));
  assert.ok(buckets.length > 10);
  assert.deepEqual(
    counts,
    counts.toSorted((a, b) => a - b),
  );
  assert.equal(buckets.at(-1)?.[1], '+Inf');
  const labels = 'method="POST",route="/api/v1/track-answer",process="all"';
  assert.equal(counts.at(-1), figureAt(text, `skilltrace_http_request_duration_seconds_count{${labels}}`));
  assert.ok(figureAt(text, `skilltrace_http_request_duration_seconds_sum{${labels}}`) > 0);
});

test('the pipeline, the servers and the process are told of', async () => {
  const gauge = (text: string, name: string): number => figureAt(text, `skilltrace_${name}{process="all"}`);
  const isWell = (told: string): boolean =>
    gauge(told, 'outbox_length') === 0 && gauge(told, 'redis_up') === 1 && gauge(told, 'clickhouse_up') === 1;
  const text = await askUntil('an empty outbox and servers that answer', scrape, isWell);
  assert.equal(gauge(text, 'oldest_pending_seconds'), 0);
  assert.equal(gauge(text, 'lanes_waiting'), 0);
  assert.equal(figureAt(text, 'skilltrace_parked_rows{of="attempts",process="all"}'), 0);
  assert.equal(figureAt(text, 'skilltrace_parked_rows{of="journal",process="all"}'), 0);
  assert.ok(figureAt(text, 'process_cpu_seconds_total{process="all"}') > 0);
});

test('no key is asked for, and nothing but GET and HEAD is taken', async () => {
  const answer = await stranger.raw({ method: 'GET', path: '/metrics' });
  assert.deepEqual(
    [answer.status, answer.headers['content-type']],
    [200, 'text/plain; version=0.0.4; charset=utf-8'],
  );
  assert.equal((await stranger.head('/metrics')).status, 200);
  assert.equal((await stranger.raw({ method: 'POST', path: '/metrics' })).status, 405);
});

test('a crowd at health, which needs no key, costs Redis what a few cost', async (t) => {
  const redis = await redisOf(t, service.redisUrl);
  const commands = async (): Promise<number> =>
    Number(/total_commands_processed:(\d+)/.exec(await redis.info('stats'))?.[1]);
  const ask = async (): Promise<number> => (await stranger.get('/api/v1/health')).status;
  const start = await commands();
  for (let i = 0; i < 10; i++) assert.equal(await ask(), 200);
  const alone = (await commands()) - start;
  assert.deepEqual([...new Set(await Promise.all(Array.from({ length: 200 }, ask)))], [200]);
  const together = (await commands()) - start - alone;
  // The service's own commands come in between.
  assert.ok(together < 10 * alone, `${alone} commands for 10, ${together} for 200 at once`);
});
