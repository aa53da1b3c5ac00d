import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RequestPart, runTraced } from '../../src/compute/track-task.js';
import { loadConfig } from '../../src/config.js';
import { createClosers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { openSpans } from '../../src/opentelemetry.js';
import { type Span, unixMs } from '../../src/spans.js';
import type { Scoped } from '../support/scope.js';
import { startReceiver } from '../support/servers/otlp-receiver.js';
import { waitFor } from '../support/wait.js';

/** @returns with the logged lines */
function open(t: Scoped, environment: Record<string, string>) {
  const lines: string[] = [];
  const logger = createLogger('info', 'test', { write: (line) => lines.push(line) });
  const closers = createClosers(logger);
  t.after(() => closers.close());
  const settings = loadConfig(environment).tracing;
  assert.ok(settings);
  return { spans: openSpans(settings, logger, closers), closers, lines };
}

const requestOf = (span: Span | null): RequestPart => ({
  ...{ importId: null, slots: 1 },
  request: { form: 'event', tenant: '', body: Buffer.from('{}'), idempotencyKey: null, receivedAt: 0, span },
});

test('The span of a batch has the first sampled request as parent and links all sampled requests', async (t) => {
  const { endpoint, bodies, spans: received } = await startReceiver(t);
  const { spans, closers } = open(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_TRACES_SAMPLER: 'always_on',
  });
  const requests = [spans('first'), null, spans('second')];
  const reply = { counts: [1], outcomes: 'c', data: '{}' };
  await runTraced(requests.map(requestOf), async ({ isTimed }) => {
    assert.ok(isTimed);
    const start = unixMs();
    return { ...reply, times: { start, end: start, steps: [{ name: 'commit', start, end: start }] } };
  });
  await runTraced([requestOf(null)], async ({ isTimed }) => {
    assert.ok(!isTimed);
    return reply;
  });
  const broken = new RangeError('a text that must not be sent');
  await assert.rejects(
    runTraced([requestOf(requests[0] ?? null)], () => Promise.reject(broken)),
    broken,
  );
  for (const request of requests) request?.end();
  await closers.close();

  const all = received();
  const findId = (spanName: string) => all.find(({ name }) => name === spanName)?.spanId;
  const [batch, failed] = all.filter(({ name }) => name === 'batch');
  assert.equal(batch?.parentId, findId('first'));
  assert.deepEqual(batch?.links, [findId('first'), findId('second')]);
  assert.deepEqual(batch.attributes, { 'skilltrace.requests': 3 });
  assert.equal(all.find(({ name }) => name === 'worker')?.parentId, batch.spanId);
  assert.equal(all.find(({ name }) => name === 'commit')?.parentId, findId('worker'));
  assert.ok(failed?.failed && !batch.failed);
  assert.equal(failed.attributes['error.type'], 'RangeError');
  assert.ok(!Buffer.concat(bodies).includes('must not be sent'));
});

test('Parent-based samplers follow the caller, and others do not', async (t) => {
  const isSampled = (sampler: string, share: string, parent: string | null): boolean => {
    const { spans } = open(t, {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      ...{ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: share },
    });
    return spans('request', (name) => (name === 'traceparent' ? parent : null)) !== null;
  };
  const sampled = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
  const unsampled = sampled.replace(/1$/, '0');
  assert.ok(isSampled('parentbased_traceidratio', '0', sampled));
  assert.ok(!isSampled('parentbased_traceidratio', '1', unsampled));
  assert.ok(!isSampled('parentbased_traceidratio', '0', null));
  assert.ok(isSampled('parentbased_traceidratio', '1', null));
  assert.ok(isSampled('parentbased_always_on', '0', null));
  assert.ok(!isSampled('parentbased_always_off', '1', null));
  assert.ok(isSampled('always_on', '0', unsampled));
  assert.ok(!isSampled('always_off', '1', sampled));
  assert.ok(!isSampled('traceidratio', '0', sampled));
});

test('The exporter logs one line when the receiver rejects spans', async (t) => {
  const { endpoint, bodies } = await startReceiver(t);
  const { spans, lines, closers } = open(t, {
    OTEL_EXPORTER_OTLP_ENDPOINT: `${endpoint}/refused`,
    OTEL_TRACES_SAMPLER_ARG: '1.0',
  });
  // More than the queue of the exporter.
  for (let i = 0; i < 4000; i++) spans('request')?.end();
  await waitFor('the line', () => lines.length > 0);
  assert.ok(await closers.close());
  assert.ok(bodies.length > 1);
  const messages = lines.map((line) => JSON.parse(line).msg);
  assert.deepEqual(messages, ['traces may be lost: Not Found']);
});
