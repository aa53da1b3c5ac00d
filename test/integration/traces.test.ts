/** Traces: what a receiver gets of requests, batches and jobs, and that one that is unavailable harms nobody. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { loadConfig } from '../../src/config.js';
import { statement } from '../support/builders/statements.js';
import { callerOf, event } from '../support/http/http.js';
import { root } from '../support/runner/root.js';
import { type ReceivedSpan, startReceiver } from '../support/servers/otlp-receiver.js';
import { clickhouseOf, dataFolder, startService } from '../support/servers/service.js';
import { launchService } from '../support/servers/service-process.js';
import { waitFor } from '../support/wait.js';

/** Nobody listens at port 1. */
const tracesTo = (endpoint = 'http://127.0.0.1:1') =>
  loadConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: '1' }).tracing;

const callerSpan = 'c'.repeat(16);
const traceOf = (digit: string): string => digit.repeat(32);
const calledIn = (digit: string, isSampled = true) => ({
  traceparent: `00-${traceOf(digit)}-${callerSpan}-0${isSampled ? 1 : 0}`,
  tracestate: 'vendor=7',
});

function lineOf(all: readonly ReceivedSpan[], span: ReceivedSpan): string[] {
  const parent = all.find(({ spanId }) => spanId === span.parentId);
  return parent === undefined ? [span.name] : [...lineOf(all, parent), span.name];
}

function assertInside(all: readonly ReceivedSpan[], inner: ReceivedSpan): void {
  const outer = all.find(({ spanId }) => spanId === inner.parentId) as ReceivedSpan;
  assert.ok(inner.start >= outer.start, inner.name);
  assert.ok(inner.end <= outer.end, inner.name);
}

const receiver = await startReceiver({ after });
const service = await startService({ after }, { tracing: tracesTo(`${receiver.endpoint}/`), lanes: 1 });

test('a receiver that is unavailable costs no answer and no clean stop', async (t) => {
  const { dataDir } = service;
  const other = await startService(t, { dataDir, role: 'api', tracing: tracesTo() });
  assert.equal((await callerOf(other, service.key).track(event())).status, 200);
  assert.ok(await other.stop());
});

test('without an endpoint nothing of the SDK is loaded', async (t) => {
  const { path, remove } = await dataFolder();
  t.after(remove);
  // Node writes there at its end which scripts its threads have loaded.
  const coverage = join(path, 'coverage');
  const other = await launchService(t, {
    ...{ ROLE: 'api', DATA_DIR: path, NODE_V8_COVERAGE: coverage },
    ...{ REDIS_URL: service.redisUrl, CLICKHOUSE_URL: service.clickhouseUrl },
  });
  assert.equal((await callerOf(other, service.key).track(event())).status, 200);
  await other.stop();
  const loaded = readdirSync(coverage)
    .map((file) => readFileSync(join(coverage, file), 'utf8'))
    .flatMap((text) => JSON.parse(text).result.map(({ url }: { url: string }) => url));
  const bundles = join(root, 'dist/bundle');
  const withSdk = readdirSync(bundles).filter(
    (name) =>
      name.endsWith('.js') && readFileSync(join(bundles, name), 'utf8').includes('BatchSpanProcessor'),
  );
  assert.ok(withSdk.length > 0);
  assert.ok(loaded.some((url) => url.endsWith('/track.js')));
  assert.deepEqual(
    withSdk.filter((name) => loaded.some((url) => url.endsWith(`/${name}`))),
    [],
  );
});

test('a sampled request is followed to its commit, a job to its insert', async (t) => {
  const caller = callerOf(service, service.key);
  const traced = () => event({ skill_id: 'hidden-skill' });
  const answers = await Promise.all([
    caller.track(traced(), calledIn('1')),
    caller.track(traced(), calledIn('2', false)),
    caller.trackAll([traced(), traced()], calledIn('3')),
    caller.get('/api/v1/mastery/hidden-learner', calledIn('4')),
    caller.track(traced(), { traceparent: 'no trace at all' }),
    caller.raw({
      path: '/xapi/statements',
      body: JSON.stringify(statement()),
      headers: { ...calledIn('5'), 'X-Experience-API-Version': '1.0.3' },
    }),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 404, 200, 200],
  );
  const clickhouse = clickhouseOf(t, service);
  await waitFor('the rows', async () => {
    const query = "SELECT count() FROM attempts WHERE skill_id = 'hidden-skill'";
    return (await (await clickhouse.query({ query, format: 'TabSeparated' })).text()) === '5\n';
  });
  assert.ok(await service.stop());

  const all = receiver.spans();
  const named = (name: string, digit?: string): ReceivedSpan[] =>
    all.filter((span) => span.name === name && (digit === undefined || span.traceId === traceOf(digit)));
  for (const [digit, route, status] of [
    ['1', 'POST /api/v1/track-answer', 200],
    ['3', 'POST /api/v1/track-answers', 200],
    ['4', 'GET /api/v1/mastery/:user_id', 404],
    ['5', 'POST /xapi/statements', 200],
  ] as const) {
    const [request] = named(route, digit);
    assert.equal(request?.parentId, callerSpan);
    assert.equal(request.traceState, 'vendor=7');
    assert.equal(request.kind, 2);
    const [method, path] = route.split(' ');
    assert.deepEqual(request.attributes, {
      'url.scheme': 'http',
      'http.request.method': method,
      'http.route': path,
      'http.response.status_code': status,
    });
  }
  const batches = named('batch');
  const linked = batches.flatMap(({ links }) => links);
  const tracked = all.filter(({ name }) => name.startsWith('POST'));
  assert.equal(tracked.length, 4);
  assert.deepEqual(linked.sort(), tracked.map(({ spanId }) => spanId).sort());
  for (const batch of batches) assert.equal(batch.parentId, batch.links[0]);
  for (const name of ['load', 'commit'])
    for (const step of named(name)) assert.deepEqual(lineOf(all, step).slice(1), ['batch', 'worker', name]);
  assert.ok(named('commit').length >= batches.length);
  assert.ok(named('insert').length > 0);
  for (const insert of named('insert')) assert.deepEqual(lineOf(all, insert), ['job', 'insert']);
  for (const name of ['batch', 'worker', 'load', 'commit', 'insert'])
    for (const span of named(name)) assertInside(all, span);
  assert.ok(!all.some(({ traceId }) => traceId === traceOf('2')));
  const sent = Buffer.concat(receiver.bodies).toString('latin1');
  assert.doesNotMatch(sent, /hidden|learner-/);
  assert.ok(!sent.includes(service.key));
});
