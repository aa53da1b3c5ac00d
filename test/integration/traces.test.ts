/** Traces that an OTLP receiver gets of requests, batches and jobs. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { loadConfig } from '../../src/config.js';
import { statement } from '../support/builders/statements.js';
import { callerOf, event } from '../support/http/http.js';
import { countOf } from '../support/inspect/warehouse.js';
import { root } from '../support/runner/root.js';
import { type ReceivedSpan, startReceiver } from '../support/servers/otlp-receiver.js';
import { clickhouseOf, startService } from '../support/servers/service.js';
import { launchService } from '../support/servers/service-process.js';
import { tempDir } from '../support/temp.js';
import { waitFor } from '../support/wait.js';

const loadTracing = (endpoint: string) =>
  loadConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: '1' }).tracing;

const callerSpan = 'c'.repeat(16);
const traceHeaders = (digit: string, isSampled = true) => ({
  traceparent: `00-${digit.repeat(32)}-${callerSpan}-0${isSampled ? 1 : 0}`,
  tracestate: 'vendor=7',
});

const receiver = await startReceiver({ after });
const tracing = loadTracing(`${receiver.endpoint}/`);
const service = await startService({ after }, { tracing, lanes: 1 });

test('The service counts answers and stops cleanly without the receiver of its traces', async (t) => {
  const unreachable = loadTracing('http://127.0.0.1:1');
  const other = await startService(t, { dataDir: service.dataDir, role: 'api', tracing: unreachable });
  assert.equal((await callerOf(other, service.key).track(event())).status, 200);
  assert.ok(await other.stop());
});

test('The service loads the OpenTelemetry SDK only if an endpoint is configured', async (t) => {
  const path = await tempDir(t);
  // At its end, Node writes here the scripts that its threads loaded.
  const coverage = join(path, 'coverage');
  const other = await launchService(t, {
    ...{ ROLE: 'api', DATA_DIR: path, NODE_V8_COVERAGE: coverage },
    ...{ REDIS_URL: service.redisUrl, CLICKHOUSE_URL: service.clickhouseUrl },
  });
  assert.equal((await callerOf(other, service.key).track(event())).status, 200);
  await other.stop();
  const loaded: string[] = readdirSync(coverage)
    .flatMap((file) => JSON.parse(readFileSync(join(coverage, file), 'utf8')).result)
    .map(({ url }: { url: string }) => url.slice(url.lastIndexOf('/') + 1));
  assert.ok(loaded.includes('track.js'));
  const bundles = join(root, 'dist/bundle');
  const scripts = readdirSync(bundles).filter((name) => name.endsWith('.js'));
  const withSdk = scripts.filter((name) =>
    /BatchSpanProcessor/.test(readFileSync(join(bundles, name), 'utf8')),
  );
  assert.ok(withSdk.length > 0);
  for (const name of withSdk) assert.ok(!loaded.includes(name), name);
});

test('The receiver gets sampled requests with their commits, and jobs with their inserts, without ids', async (t) => {
  const caller = callerOf(service, service.key);
  const hidden = () => event({ skill_id: 'hidden-skill' });
  const xapiHeaders = { ...traceHeaders('5'), 'X-Experience-API-Version': '1.0.3' };
  const responses = await Promise.all([
    caller.track(hidden(), traceHeaders('1')),
    caller.track(hidden(), traceHeaders('2', false)),
    caller.trackAll([hidden(), hidden()], traceHeaders('3')),
    caller.get('/api/v1/mastery/hidden-learner', traceHeaders('4')),
    caller.track(hidden(), { traceparent: 'not a trace' }),
    caller.raw({ path: '/xapi/statements', body: JSON.stringify(statement()), headers: xapiHeaders }),
  ]);
  const statuses = responses.map(({ status }) => status);
  assert.deepEqual(statuses, [200, 200, 200, 404, 200, 200]);
  const clickhouse = clickhouseOf(t, service);
  const countRows = () => countOf(clickhouse, "attempts WHERE skill_id = 'hidden-skill'");
  await waitFor('the rows', async () => (await countRows()) === 5);
  assert.ok(await service.stop());

  const all = receiver.spans();
  const named = (name: string): ReceivedSpan[] => all.filter((span) => span.name === name);
  for (const [digit, method, route, status] of [
    ['1', 'POST', '/api/v1/track-answer', 200],
    ['3', 'POST', '/api/v1/track-answers', 200],
    ['4', 'GET', '/api/v1/mastery/:user_id', 404],
    ['5', 'POST', '/xapi/statements', 200],
  ] as const) {
    const request = named(`${method} ${route}`).find(({ traceId }) => traceId === digit.repeat(32));
    const { parentId, traceState, kind, attributes } = request as ReceivedSpan;
    assert.deepEqual([parentId, traceState, kind], [callerSpan, 'vendor=7', 2]);
    assert.deepEqual(attributes, {
      ...{ 'url.scheme': 'http', 'http.request.method': method },
      ...{ 'http.route': route, 'http.response.status_code': status },
    });
  }
  assert.ok(!all.some(({ traceId }) => traceId === '2'.repeat(32)), 'the second request is not sampled');

  const batches = named('batch');
  const requests = all.filter(({ name }) => name.startsWith('POST'));
  assert.equal(requests.length, 4);
  const links = batches.flatMap((batch) => batch.links);
  assert.deepEqual(links.sort(), requests.map(({ spanId }) => spanId).sort());
  for (const batch of batches) assert.equal(batch.parentId, batch.links[0]);
  assert.ok(named('commit').length >= batches.length);
  assert.ok(named('insert').length > 0);
  assert.ok(named('load').length > 0);
  const parentOf = (span: ReceivedSpan): ReceivedSpan | undefined =>
    all.find(({ spanId }) => spanId === span.parentId);
  const parentNames = { batch: undefined, worker: 'batch', load: 'worker', commit: 'worker', insert: 'job' };
  for (const [name, parentName] of Object.entries(parentNames))
    for (const span of named(name)) {
      const parent = parentOf(span) as ReceivedSpan;
      if (parentName !== undefined) assert.equal(parent.name, parentName);
      assert.ok(span.start >= parent.start && span.end <= parent.end, `${name} is not inside its parent`);
    }
  for (const job of named('job')) assert.equal(parentOf(job), undefined);
  const sent = Buffer.concat(receiver.bodies).toString('latin1');
  assert.doesNotMatch(sent, /hidden|learner-/);
  assert.ok(!sent.includes(service.key));
});
