/** Metrics in the Prometheus text format (docs/operate/monitor.md). */
import { AggregatorRegistry, collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { singleFlight } from '../../concurrency.js';
import type { Consumer, StallCounts } from '../../jobs/consumer.js';
import type { AnswerTally } from '../../services/answers/record-attempts.js';
import { createServerProbes } from '../../services/operations/health.js';
import {
  type MetricName,
  type MetricReader,
  type MetricRegistry,
  type MetricSample,
  metricDescriptions,
} from '../../services/operations/metric-registry.js';
import { fetchMemoryUsage, selectFullest } from '../../store/redis/server/server-info.js';
import type { Engine } from '../startup/engine.js';

export type CollectedMetrics = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export interface Metrics extends MetricRegistry {
  collect(): Promise<CollectedMetrics>;
}

const namePrefix = 'skilltrace_';

export function createMetrics(processName: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry });
  return {
    add: (name, read) => registry.registerMetric(createMetric(name, read)),
    collect: singleFlight(() => registry.getMetricsAsJSON()),
  };
}

export function formatMetrics(processes: readonly CollectedMetrics[]): Promise<string> {
  const all = processes.map((figures) =>
    figures.map((figure) => ({ ...figure, aggregator: 'sum' as const })),
  );
  return AggregatorRegistry.aggregate(all).metrics();
}

function selectMetricType(name: MetricName): 'histogram' | 'counter' | 'gauge' {
  if (name === 'http_request_duration_seconds') return 'histogram';
  return name.endsWith('_total') ? 'counter' : 'gauge';
}

/** Implements only what the registry calls: the library's metrics cannot be read on demand. */
function createMetric(shortName: MetricName, read: MetricReader): Metric {
  const name = namePrefix + shortName;
  const get = async () => ({
    ...{ name, help: metricDescriptions[shortName], type: selectMetricType(shortName), aggregator: 'sum' },
    values: (await readSamples(read)).map(({ labels = {}, value, metricName }) => ({
      ...{ labels, value },
      ...(metricName !== undefined && { metricName: namePrefix + metricName }),
    })),
  });
  return { name, get } as unknown as Metric;
}

async function readSamples(read: MetricReader) {
  try {
    const samples = await read();
    return typeof samples === 'number' ? [{ value: samples }] : samples;
  } catch {
    return [];
  }
}

export const toLabeledSamples = (label: string, values: Readonly<Record<string, number>>): MetricSample[] =>
  Object.entries(values).map(([name, value]) => ({ value, labels: { [label]: name } }));

export function addAnswerMetrics(
  metricRegistry: MetricRegistry,
  { compute }: Pick<Engine, 'compute'>,
  tally: AnswerTally,
) {
  metricRegistry.add('answers_total', () => toLabeledSamples('outcome', tally));
  metricRegistry.add('lanes_waiting', compute.countQueued);
  metricRegistry.add('worker_threads', compute.threads);
}

/** Equal in all processes, so one process of a host reports them. */
export function addDeploymentMetrics(metricRegistry: MetricRegistry, engine: Engine): void {
  const { redis, clickhouse } = createServerProbes(engine);
  const outbox = singleFlight(engine.outbox.facts);
  const journal = singleFlight(engine.journal.facts);
  metricRegistry.add('redis_up', async () => Number((await redis()) === null));
  metricRegistry.add('redis_memory_bytes', async () => {
    const { used, limit } = selectFullest(await fetchMemoryUsage(engine.redis));
    return toLabeledSamples('of', { used, limit });
  });
  metricRegistry.add('clickhouse_up', async () => Number((await clickhouse()) === null));
  metricRegistry.add('outbox_length', async () => (await outbox()).outboxLength);
  metricRegistry.add('erasures_due', async () => (await outbox()).erasuresDue);
  metricRegistry.add('oldest_pending_seconds', async () => (await outbox()).oldestPendingSeconds);
  metricRegistry.add('journal_length', async () => (await journal()).journalLength);
  metricRegistry.add('parked_rows', async () =>
    toLabeledSamples('of', { attempts: (await outbox()).parked, journal: (await journal()).parked }),
  );
}

export type Consumers = Readonly<Record<string, Pick<Consumer, 'getStallReason' | 'getCounts'>>>;

export function addStallMetrics(metricRegistry: MetricRegistry, consumers: Consumers): void {
  const all = Object.entries(consumers);
  const readCounts = (count: keyof StallCounts) => () =>
    toLabeledSamples(
      'consumer',
      Object.fromEntries(all.map(([name, { getCounts }]) => [name, getCounts()[count]])),
    );
  metricRegistry.add('stalls_total', readCounts('stalls'));
  metricRegistry.add('restarts_total', readCounts('restarts'));
}
