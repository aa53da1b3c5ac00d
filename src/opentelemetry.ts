/** OpenTelemetry over OTLP and HTTP. Imported only if tracing is on. */
import * as api from '@opentelemetry/api';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import * as sdk from '@opentelemetry/sdk-trace';
import type { Config } from './config.js';
import { describeConnectionError } from './connection-problem.js';
import { type Closers, waitAtMost } from './lifecycle.js';
import type { Logger } from './logger.js';
import { type Span, type StartSpan, unixMs } from './spans.js';

type Settings = NonNullable<Config['tracing']>;

const [logEveryMs, flushMs] = [60_000, 1500];

/** Never throws: drops spans if 2,048 are queued. */
export function openSpans({ url, sampler, ratio }: Settings, logger: Logger, closers: Closers): StartSpan {
  logProblems(logger);
  const detected = detectResources({ detectors: [envDetector] });
  const share = sampler.endsWith('_on') ? 1 : sampler.endsWith('_off') ? 0 : ratio;
  const root = new sdk.TraceIdRatioBasedSampler(share);
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'skilltrace' }).merge(detected),
    sampler: sampler.startsWith('parentbased') ? new sdk.ParentBasedSampler({ root }) : root,
    // Maximum requests of a batch.
    spanLimits: { linkCountLimit: 512 },
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url }) })],
  });
  closers.add('spans', (limitMs) => waitAtMost(provider.shutdown(), Math.min(flushMs, limitMs / 2)));
  const tracer = provider.getTracer('skilltrace');
  const propagator = new W3CTraceContextPropagator();
  return (name, header) => {
    const kind = header ? api.SpanKind.SERVER : api.SpanKind.CONSUMER;
    const getter = { get: (_: unknown, key: string) => header?.(key) ?? undefined, keys: () => [] };
    const caller = propagator.extract(api.ROOT_CONTEXT, null, getter);
    const span = tracer.startSpan(name, { kind, startTime: unixMs() }, caller);
    return span.isRecording() ? createSampledSpan(tracer, span) : null;
  };
}

function logProblems(logger: Logger): void {
  let nextAt = 0;
  /** Logs component, problem and reason, without sent data. */
  const log = (...problem: unknown[]): void => {
    if (performance.now() < nextAt) return;
    nextAt = performance.now() + logEveryMs;
    const words = problem.slice(0, 3).map((word) => describeConnectionError(word).text);
    logger.warn(`traces may be lost: ${words.join(': ')}`);
  };
  const sink = { error: log, warn: log, info: log, debug: log, verbose: log };
  api.diag.setLogger(sink, { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true });
  setGlobalErrorHandler(log);
}

type SampledSpan = Span & { readonly context: api.SpanContext };

const createSampledSpan = (tracer: api.Tracer, span: api.Span): SampledSpan => ({
  context: span.spanContext(),
  child: (name, attributes = {}, links = [], startTime = unixMs()) => {
    const kind = 'db.system.name' in attributes ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;
    const options = { kind, attributes, links: links as SampledSpan[], startTime };
    return createSampledSpan(
      tracer,
      tracer.startSpan(name, options, api.trace.setSpan(api.ROOT_CONTEXT, span)),
    );
  },
  end: (attributes = {}, at = unixMs()) => {
    span.setAttributes(attributes);
    if ('error.type' in attributes) span.setStatus({ code: api.SpanStatusCode.ERROR });
    span.end(at);
  },
});
