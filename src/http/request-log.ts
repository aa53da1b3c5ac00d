import { ApiError } from '../errors.js';
import type { Logger } from '../logger.js';
import type { MetricRegistry, MetricSample } from '../services/operations/metric-registry.js';
import type { Exchange } from './exchange.js';
import type { Route } from './route.js';

export interface RouteFigures {
  readonly labels: { readonly method: string; readonly route: string };
  readonly statuses: Map<number, number>;
  /** One per latency bound, and one for longer times. */
  readonly buckets: number[];
  seconds: number;
}

/** Seconds. */
const latencyBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/** Without Redis all requests fail: log one line per second, with their number. */
const unavailableEveryMs = 1000;

export type RequestLog = ReturnType<typeof createRequestLog>;

export function createRequestLog(figures: MetricRegistry, logger: Logger) {
  const routes = new Map<string, RouteFigures>();
  let defects = 0;
  let nextAt = 0;
  let unlogged = 0;
  const samples = (of: (route: RouteFigures) => MetricSample[]) => () =>
    [...routes.values()].filter(({ statuses }) => statuses.size > 0).flatMap(of);
  figures.add('http_requests_total', samples(toStatusSamples));
  figures.add('http_request_duration_seconds', samples(toLatencySamples));
  figures.add('defects_total', () => defects);
  return {
    /** @param path the route's template: a request's path names learners */
    getRouteFigures: (method: string, path: string): RouteFigures => {
      const name = `${method} ${path}`;
      const labels = { method, route: path };
      const buckets = Array<number>(latencyBounds.length + 1).fill(0);
      const counts = routes.get(name) ?? { labels, statuses: new Map(), buckets, seconds: 0 };
      routes.set(name, counts);
      return counts;
    },
    logFailure: (exchange: Exchange, route: Route | null, error: unknown): void => {
      const line = { ...toLogFields(exchange, route), err: error };
      if (!(error instanceof ApiError) || error.code !== 'UNAVAILABLE') {
        defects += 1;
        logger.error(line, 'request failed');
      } else if (performance.now() < nextAt) unlogged += 1;
      else {
        logger.warn({ ...line, alike: unlogged }, 'request rejected with 503');
        nextAt = performance.now() + unavailableEveryMs;
        unlogged = 0;
      }
    },
    /** Logs one line, because failed parts usually have the same cause. */
    logPartFailures: (exchange: Exchange, route: Route | null, errors: readonly ApiError[]): void => {
      if (errors.length === 0) return;
      defects += errors.length;
      const line = { ...toLogFields(exchange, route), err: errors[0], alike: errors.length - 1 };
      logger.error(line, 'part of a request failed');
    },
  };
}

/** @param ms null: not timed */
export function recordResponse(route: RouteFigures, status: number, ms: number | null): void {
  const { statuses, buckets } = route;
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  if (ms === null) return;
  route.seconds += ms / 1000;
  let bucket = 0;
  while (bucket < latencyBounds.length && ms > (latencyBounds[bucket] as number) * 1000) bucket += 1;
  buckets[bucket] = (buckets[bucket] as number) + 1;
}

const toStatusSamples = ({ labels, statuses }: RouteFigures): MetricSample[] =>
  [...statuses].map(([status, value]) => ({ value, labels: { ...labels, status: `${status}` } }));

function toLatencySamples({ labels, buckets, seconds }: RouteFigures): MetricSample[] {
  let count = 0;
  const sampleOf = (part: string, value: number, more = {}): MetricSample => ({
    metricName: `http_request_duration_seconds_${part}`,
    labels: { ...labels, ...more },
    value,
  });
  const cumulated = buckets.map((inBucket, i) => {
    count += inBucket;
    return sampleOf('bucket', count, { le: `${latencyBounds[i] ?? '+Inf'}` });
  });
  return [...cumulated, sampleOf('sum', seconds), sampleOf('count', count)];
}

const toLogFields = ({ requestId, method }: Exchange, route: Route | null) => ({
  requestId,
  method,
  route: route?.path ?? null,
});
