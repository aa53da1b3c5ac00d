/** Metrics in the Prometheus text format (docs/operations.md). */
import { AggregatorRegistry, collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { singleFlight } from '../concurrency.js';
import type { Consumer, StallCounts } from '../jobs/consumer.js';
import {
  type FigureName,
  type Figures,
  figureHelps,
  type ReadFigure,
  type Sample,
} from '../services/read/figures.js';
import { serverProbes } from '../services/read/health.js';
import type { AnswerTally } from '../services/record/record-attempts.js';
import { fetchMemoryUsage, selectFullest } from '../store/redis/server-info.js';
import type { Engine } from './engine.js';

export type CollectedFigures = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export interface Metrics extends Figures {
  collect(): Promise<CollectedFigures>;
}

const namePrefix = 'skilltrace_';

export function createMetrics(processName: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry });
  return {
    add: (name, read) => registry.registerMetric(metricOf(name, read)),
    collect: singleFlight(() => registry.getMetricsAsJSON()),
  };
}

export function metricsText(processes: readonly CollectedFigures[]): Promise<string> {
  const all = processes.map((figures) =>
    figures.map((figure) => ({ ...figure, aggregator: 'sum' as const })),
  );
  return AggregatorRegistry.aggregate(all).metrics();
}

function typeOf(name: FigureName): 'histogram' | 'counter' | 'gauge' {
  if (name === 'http_request_duration_seconds') return 'histogram';
  return name.endsWith('_total') ? 'counter' : 'gauge';
}

/** Implements only what the registry calls: the library's metrics cannot be read on demand. */
function metricOf(figure: FigureName, read: ReadFigure): Metric {
  const name = namePrefix + figure;
  const get = async () => ({
    ...{ name, help: figureHelps[figure], type: typeOf(figure), aggregator: 'sum' },
    values: (await samplesOf(read)).map(({ labels = {}, value, metricName }) => ({
      ...{ labels, value },
      ...(metricName !== undefined && { metricName: namePrefix + metricName }),
    })),
  });
  return { name, get } as unknown as Metric;
}

async function samplesOf(read: ReadFigure) {
  try {
    const samples = await read();
    return typeof samples === 'number' ? [{ value: samples }] : samples;
  } catch {
    return [];
  }
}

export const byLabel = (label: string, values: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(values).map(([name, value]) => ({ value, labels: { [label]: name } }));

export function addAnswerFigures(figures: Figures, { compute }: Pick<Engine, 'compute'>, tally: AnswerTally) {
  figures.add('answers_total', () => byLabel('outcome', tally));
  figures.add('lanes_waiting', compute.countQueued);
  figures.add('worker_threads', compute.threads);
}

/** Equal in all processes, so one process of a host reports them. */
export function addDeploymentFigures(figures: Figures, engine: Engine): void {
  const { redis, clickhouse } = serverProbes(engine);
  const outbox = singleFlight(engine.outbox.facts);
  const journal = singleFlight(engine.journal.facts);
  figures.add('redis_up', async () => Number((await redis()) === null));
  figures.add('redis_memory_bytes', async () => {
    const { used, limit } = selectFullest(await fetchMemoryUsage(engine.redis));
    return byLabel('of', { used, limit });
  });
  figures.add('clickhouse_up', async () => Number((await clickhouse()) === null));
  figures.add('outbox_length', async () => (await outbox()).outboxLength);
  figures.add('erasures_due', async () => (await outbox()).erasuresDue);
  figures.add('oldest_pending_seconds', async () => (await outbox()).oldestPendingSeconds);
  figures.add('journal_length', async () => (await journal()).journalLength);
  figures.add('parked_rows', async () =>
    byLabel('of', { attempts: (await outbox()).parked, journal: (await journal()).parked }),
  );
}

export type Consumers = Readonly<Record<string, Pick<Consumer, 'getStallReason' | 'getCounts'>>>;

export function addStallFigures(figures: Figures, consumers: Consumers): void {
  const all = Object.entries(consumers);
  const of = (count: keyof StallCounts) => () =>
    byLabel('consumer', Object.fromEntries(all.map(([name, { getCounts }]) => [name, getCounts()[count]])));
  figures.add('stalls_total', of('stalls'));
  figures.add('restarts_total', of('restarts'));
}
