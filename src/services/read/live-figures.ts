import { computeSum } from '../../lists.js';

export interface ReportedFigure {
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

interface Snapshot {
  /** Monotonic, in milliseconds. */
  readonly at: number;
  readonly processes: ReadonlySet<unknown>;
  readonly series: ReadonlyMap<string, Series>;
}

const namePrefix = /^skilltrace_/;

function snapshotOf(processes: readonly (readonly ReportedFigure[])[], at: number): Snapshot {
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
const grown = (before: Snapshot, now: Snapshot, wanted: (series: Series) => boolean): Series[] =>
  [...now.series].flatMap(([key, series]) => {
    if (!wanted(series) || !before.processes.has(series.labels.process)) return [];
    const { value = 0 } = before.series.get(key) ?? {};
    return [{ ...series, value: series.value < value ? series.value : series.value - value }];
  });

const total = (series: readonly Series[]): number => computeSum(series.map(({ value }) => value));

const latencyMs = 10_000;
/** Shorter spans give noisy rates. */
const shortestMs = 500;

const gauges = [
  ...['outbox_length', 'oldest_pending_seconds', 'journal_length', 'parked_rows'],
  ...['lanes_waiting', 'connections_open'],
];

export function createLiveFigures() {
  let kept: readonly Snapshot[] = [];
  return (processes: readonly (readonly ReportedFigure[])[], monotonicMs: number, at: Date): object => {
    const now = snapshotOf(processes, monotonicMs);
    kept = kept.filter((one) => now.at - one.at <= latencyMs + shortestMs);
    const [oldest] = kept;
    const last = kept.findLast((one) => now.at - one.at >= shortestMs);
    kept = [...kept, now];
    const sum = (name: string, of?: string): number | null => {
      const found = [...now.series.values()].filter(
        (series) => series.name === name && (of === undefined || series.labels.of === of),
      );
      return found.length === 0 ? null : total(found);
    };
    const isUp = (name: string): boolean | null => (sum(name) === null ? null : sum(name) !== 0);
    const [used, limit] = [sum('redis_memory_bytes', 'used'), sum('redis_memory_bytes', 'limit')];
    return {
      at: at.toISOString(),
      processes: [...now.series.values()].filter(({ name }) => name === 'connections_open').length,
      ...ratesOf(last, now),
      latency_ms: oldest === undefined ? null : latencyOf(oldest, now),
      ...Object.fromEntries(gauges.map((name) => [name, sum(name)])),
      redis_up: isUp('redis_up'),
      clickhouse_up: isUp('clickhouse_up'),
      redis_memory: used === null ? null : { used, limit: limit || null },
    };
  };
}

function ratesOf(before: Snapshot | undefined, now: Snapshot): object {
  if (before === undefined) return { answers_per_second: null, requests_per_second: null, errors: null };
  const perSecond = (count: number): number => Math.round((count * 1e4) / (now.at - before.at)) / 10;
  const requests = grown(before, now, ({ name }) => name === 'http_requests_total');
  const isAccepted = ({ name, labels }: Series): boolean =>
    name === 'answers_total' && labels.outcome === 'counted';
  const statuses = new Set(requests.map(({ labels }) => `${labels.status}`));
  const errors = [...statuses].sort().flatMap((status) => {
    const count = total(requests.filter(({ labels }) => labels.status === status));
    return status >= '400' && count > 0 ? [[status, perSecond(count)] as const] : [];
  });
  return {
    answers_per_second: perSecond(total(grown(before, now, isAccepted))),
    requests_per_second: perSecond(total(requests)),
    errors: Object.fromEntries(errors),
  };
}

const counting = ['/api/v1/track-answer', '/api/v1/track-answers'];

/** Quantiles of tracking requests, interpolated within a bucket. */
function latencyOf(before: Snapshot, now: Snapshot): object | null {
  const isWanted = ({ name, labels }: Series): boolean =>
    name === 'http_request_duration_seconds_bucket' && counting.includes(`${labels.route}`);
  const upTo = new Map<number, number>();
  for (const { labels, value } of grown(before, now, isWanted)) {
    const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le);
    upTo.set(bound, (upTo.get(bound) ?? 0) + value);
  }
  const buckets = [...upTo].sort(([a], [b]) => a - b);
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
