import type { Percentiles } from '../load/plan.js';
import type { Latency } from '../results/results.js';
import { computeSpread } from '../results/spread.js';
import type { Sample } from './measure.js';

/** Parts that work until an answer is acknowledged. */
export const acceptingParts: readonly string[] = [
  'front end',
  'workers',
  'forecast',
  'runtime',
  'libuv',
  'rest',
  'server',
  'redis',
  'postgres',
];
/** Parts that move answers to ClickHouse. Redis also does, but counts as accepting. */
export const drainingParts: readonly string[] = ['pipeline', 'clickhouse'];
export const allParts: readonly string[] = [...acceptingParts, ...drainingParts];

export const listP99 = (samples: readonly Sample[]): number[] =>
  samples.map(({ load }) => load.latency?.p99 ?? 0);

export class Rounds {
  readonly #samples = new Map<string, Sample[]>();

  add(contestant: string, sample: Sample): void {
    this.#samples.set(contestant, [...this.getSamples(contestant), sample]);
  }

  getSamples(contestant: string): readonly Sample[] {
    return this.#samples.get(contestant) ?? [];
  }

  /** CPU µs per unit. */
  cpu(contestant: string, parts = acceptingParts): number[] {
    return this.getSamples(contestant).map(({ cpu }) =>
      Object.entries(cpu).reduce((sum, [part, micros]) => (parts.includes(part) ? sum + micros : sum), 0),
    );
  }

  perSecond(contestant: string): number[] {
    return this.getSamples(contestant).map(({ perSecond }) => perSecond);
  }

  p99(contestant: string): number[] {
    return listP99(this.getSamples(contestant));
  }

  /** Seconds. */
  lag(contestant: string): number[] {
    return this.getSamples(contestant).map(({ pipeline }) => pipeline?.lag ?? 0);
  }
}

const median = (values: readonly number[]): number => computeSpread(values).median;

/** Medians over the rounds, each percentile separately. */
export function computeLatency(samples: readonly Sample[]): Latency {
  const all = samples.flatMap(({ load }) => load.latency ?? []);
  const at = (percentile: keyof Percentiles): number => median(all.map((one) => one[percentile]));
  return {
    offered: median(samples.map(({ load }) => load.offered ?? 0)),
    achieved: median(samples.map(({ perSecond }) => perSecond)),
    p50: at('p50'),
    p90: at('p90'),
    p99: at('p99'),
    p999: at('p999'),
    max: at('max'),
  };
}
