/** Traces: what a receiver gets of a request, of its batch and of what follows, and what a receiver that is away harms. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadConfig } from '../../src/config.js';
import { callerOf, event } from '../support/http.js';
import { attributeOf, type ReceivedSpan, startReceiver } from '../support/otlp-receiver.js';
import { clickhouseOf, redisOf, startService } from '../support/service.js';
import { launchService } from '../support/service-process.js';
import { waitFor } from '../support/wait.js';

/** As the variables say; a receiver at a port where nobody listens is the default. */
const settings = (endpoint: string, more: Record<string, string> = {}) =>
  loadConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...more }).spans;

const traceId = (digit: string): string => digit.repeat(32);
const callerSpan = 'c'.repeat(16);
const traceparent = (digit: string, isSampled: boolean) => ({
  traceparent: `00-${traceId(digit)}-${callerSpan}-${isSampled ? '01' : '00'}`,
  tracestate: 'vendor=7',
});

const parentNames = (spans: readonly ReceivedSpan[], span: ReceivedSpan): string[] => {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return parent === undefined ? [] : [parent.name, ...parentNames(spans, parent)];
};
const inside = (inner: ReceivedSpan, outer: ReceivedSpan): boolean =>
  BigInt(inner.startTimeUnixNano) >= BigInt(outer.startTimeUnixNano) &&
  BigInt(inner.endTimeUnixNano) <= BigInt(outer.endTimeUnixNano);

test('a sampled request is followed through batch, worker and commit, a job through its insert', async (t) => {
  const receiver = await startReceiver(t);
  const spans = settings(`${receiver.endpoint}/`, {
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '1',
  });
  const service = await startService(t, { spans, lanes: 1 });
  const caller = callerOf(service, service.key);
  const sent = [
    caller.track(event({ user_id: 'secret-learner' }), traceparent('1', true)),
    caller.track(event(), traceparent('2', true)),
    caller.track(event(), traceparent('3', false)),
    caller.trackAll([event(), event()], traceparent('4', true)),
  ];
  assert.deepEqual(
    (await Promise.all(sent)).map(({ status }) => status),
    [200, 200, 200, 200],
  );
  assert.equal((await caller.get('/api/v1/mastery/nobody-secret', traceparent('5', true))).status, 404);
  const stored = clickhouseOf(t, service);
  await waitFor('the rows', async () => {
    const rows = await stored.query({ query: 'SELECT count() FROM attempts', format: 'TabSeparated' });
    return (await rows.text()).trim() === '5';
  });
  assert.ok(await service.stop());
  const all = receiver.spans();
  console.log(
    JSON.stringify(
      all.map((s) => [
        s.name,
        s.kind,
        s.traceId.slice(0, 4),
        parentNames(all, s),
        s.links?.length,
        s.attributes.map((a) => [a.key, Object.values(a.value)[0]]),
      ]),
      null,
      0,
    ).replaceAll('],["', '],\n["'),
  );
  void [attributeOf, inside, redisOf, launchService];
});
