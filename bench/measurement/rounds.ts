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

  /** Seconds. */
  lag(contestant: string): number[] {
    return this.getSamples(contestant).map(({ pipeline }) => pipeline?.lag ?? 0);
  }
}
