/** The figures of one process in the Prometheus text format. */
import { AggregatorRegistry, collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { singleFlight } from '../concurrency.js';
import type { Figure, Figures, Sample, Samples } from '../services/read/figures.js';

/** The figures of a process, as they also go from one process to another. */
export type CollectedFigures = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

export interface Metrics extends Figures {
  /** All that this process knows of itself. */
  collect(): Promise<CollectedFigures>;
}

const namePrefix = 'skilltrace_';

/** @param processName of the processes of a deployment, the label `process` of every figure */
export function createMetrics(processName: string): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry });
  return {
    add: (figure) => registry.registerMetric(metricOf(figure)),
    // However many look at once, everything is asked once.
    collect: singleFlight(() => registry.getMetricsAsJSON()),
  };
}

/** @param processes figures of each process; the label `process` keeps their values apart */
export function metricsText(processes: readonly CollectedFigures[]): Promise<string> {
  const all = processes.map((figures) =>
    figures.map((figure) => ({ ...figure, aggregator: 'sum' as const })),
  );
  return AggregatorRegistry.aggregate(all).metrics();
}

/** The registry asks a metric for nothing but this; the library's own kinds want every value as it comes. */
function metricOf({ name, help, type, read }: Figure): Metric {
  const fullName = namePrefix + name;
  const get = async () => ({
    name: fullName,
    help,
    type,
    aggregator: 'sum',
    values: (await samplesOf(read)).map(({ labels, value, metricName }) => ({
      labels: labels ?? {},
      value,
      ...(metricName !== undefined && { metricName: namePrefix + metricName }),
    })),
  });
  return { name: fullName, get } as unknown as Metric;
}

/** A part that cannot be read now must not hold up the others. */
async function samplesOf(read: () => Samples | Promise<Samples>): Promise<readonly Sample[]> {
  try {
    const samples = await read();
    return typeof samples === 'number' ? [{ value: samples }] : samples;
  } catch {
    return [];
  }
}
