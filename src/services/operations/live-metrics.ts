import { computeSum } from '../../lists.js';

export interface ReportedMetric {
  readonly name: string;
  readonly values: readonly {
    readonly value: number;
    readonly labels: Readonly<Record<string, unknown>>;
    readonly metricName?: string;
  }[];
}

interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, unknown>>;
  readonly value: number;
}

export interface MetricSnapshot {
  /** Monotonic, in milliseconds. */
  readonly at: number;
  readonly processes: ReadonlySet<unknown>;
  readonly series: ReadonlyMap<string, Series>;
}

const namePrefix = /^skilltrace_/;

export function createSnapshot(
  processes: readonly (readonly ReportedMetric[])[],
  at: number,
): MetricSnapshot {
  const all = processes.flat().flatMap(({ name, values }) =>
    values.map(({ value, labels, metricName = name }) => ({
      ...{ name: metricName.replace(namePrefix, ''), labels, value },
    })),
  );
  return {
    at,
    processes: new Set(all.map(({ labels }) => labels.process)),
    series: new Map(all.map((series) => [JSON.stringify([series.name, series.labels]), series])),
  };
}

/** Ignores new processes. A restarted counter grew by its whole value. */
const computeGrowth = (
  before: MetricSnapshot,
  now: MetricSnapshot,
  isSelected: (series: Series) => boolean,
): Series[] =>
  [...now.series].flatMap(([key, series]) => {
    if (!isSelected(series) || !before.processes.has(series.labels.process)) return [];
    const { value = 0 } = before.series.get(key) ?? {};
    return [{ ...series, value: series.value < value ? series.value : series.value - value }];
  });

/** Requests by status, counted answers, and tracking requests by upper bound of the duration in seconds. */
export function countRequests(before: MetricSnapshot, now: MetricSnapshot) {
  const grow = (name: string) => computeGrowth(before, now, (series) => series.name === name);
  const [statuses, buckets] = [new Map<string, number>(), new Map<string, number>()];
  for (const { labels, value } of grow('http_requests_total')) add(statuses, `${labels.status}`, value);
  for (const { labels, value } of grow('http_request_duration_seconds_bucket'))
    if (trackingRoutes.includes(`${labels.route}`)) add(buckets, `${labels.le}`, value);
  const counted = grow('answers_total').filter(({ labels }) => labels.outcome === 'counted');
  return { answers: sumSeries(counted), statuses, buckets };
}

export const add = (sums: Map<string, number>, name: string, value: number): unknown =>
  sums.set(name, (sums.get(name) ?? 0) + value);

const sumSeries = (series: readonly Series[]): number => computeSum(series.map(({ value }) => value));

const latencyWindowMs = 10_000;
/** Shorter spans give noisy rates. */
const minSpanMs = 500;

const gauges = [
  ...['outbox_length', 'oldest_pending_seconds', 'journal_length', 'parked_rows'],
  ...['lanes_waiting', 'connections_open'],
];

export function createLiveMetrics() {
  let snapshots: readonly MetricSnapshot[] = [];
  return (processes: readonly (readonly ReportedMetric[])[], monotonicMs: number, at: Date): object => {
    const now = createSnapshot(processes, monotonicMs);
    snapshots = snapshots.filter((one) => now.at - one.at <= latencyWindowMs + minSpanMs);
    const [oldest] = snapshots;
    const last = snapshots.findLast((one) => now.at - one.at >= minSpanMs);
    snapshots = [...snapshots, now];
    const sum = (name: string, of?: string): number | null => {
      const found = [...now.series.values()].filter(
        (series) => series.name === name && (of === undefined || series.labels.of === of),
      );
      return found.length === 0 ? null : sumSeries(found);
    };
    const isUp = (name: string): boolean | null => (sum(name) === null ? null : sum(name) !== 0);
    const [used, limit] = [sum('redis_memory_bytes', 'used'), sum('redis_memory_bytes', 'limit')];
    return {
      at: at.toISOString(),
      processes: [...now.series.values()].filter(({ name }) => name === 'connections_open').length,
      ...computeRates(last, now),
      latency_ms: oldest === undefined ? null : computeQuantiles(countRequests(oldest, now).buckets),
      ...Object.fromEntries(gauges.map((name) => [name, sum(name)])),
      redis_up: isUp('redis_up'),
      clickhouse_up: isUp('clickhouse_up'),
      redis_memory: used === null ? null : { used, limit: limit || null },
    };
  };
}

function computeRates(before: MetricSnapshot | undefined, now: MetricSnapshot): object {
  if (before === undefined) return { answers_per_second: null, requests_per_second: null, errors: null };
  return describeRates(countRequests(before, now), (now.at - before.at) / 1000);
}

export function describeRates(
  { answers, statuses }: Pick<ReturnType<typeof countRequests>, 'answers' | 'statuses'>,
  seconds: number,
) {
  const perSecond = (count: number): number => Math.round((count * 1000) / seconds) / 1000;
  const errors = [...statuses].sort().filter(([status, count]) => status >= '400' && count > 0);
  return {
    answers_per_second: perSecond(answers),
    requests_per_second: perSecond(computeSum([...statuses.values()])),
    errors: Object.fromEntries(errors.map(([status, count]) => [status, perSecond(count)])),
  };
}

const trackingRoutes = ['/api/v1/track-answer', '/api/v1/track-answers'];

/** Milliseconds, interpolated within a bucket. @param upTo requests by upper bound in seconds */
export function computeQuantiles(upTo: ReadonlyMap<string, number>) {
  const toBound = (le: string): number => (le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le));
  const buckets = [...upTo].map(([le, count]) => [toBound(le), count] as const).sort(([a], [b]) => a - b);
  const all = buckets.at(-1)?.[1] ?? 0;
  if (all === 0) return null;
  const quantile = (share: number): number => {
    const place = buckets.findIndex(([, count]) => count >= share * all);
    const [low, below] = buckets[place - 1] ?? [0, 0];
    const [high, count] = buckets[place] as [number, number];
    const within = high === Number.POSITIVE_INFINITY ? 0 : (high - low) / (count - below);
    const seconds = low + within * (share * all - below);
    return Math.round(seconds * 1e4) / 10;
  };
  return { p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99) };
}
