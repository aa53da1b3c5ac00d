/** Invented results of the benchmark: peers, targets of one load, batches, and goals. */
import type {
  BenchResults,
  Figure,
  Latency,
  Ledger,
  Measurement,
  ScenarioResult,
  Spread,
} from '../../../bench/results/results.js';
import { computeSpread } from '../../../bench/results/spread.js';

/** Values at even distances around the median. @param noise share of the median */
export const spread = (median: number, noise = 0.02, rounds = 5): Spread =>
  computeSpread(
    Array.from(
      { length: rounds },
      (_, i) => median * (1 + noise * (rounds < 2 ? 0 : (2 * i) / (rounds - 1) - 1)),
    ),
  );

export const figure = (name: string, value: Spread, goal: Figure['goal'], unit = 'times'): Figure => ({
  ...{ name, about: `about ${name}`, unit, value, goal },
});

const latencyAround = (p50: number): Record<keyof Latency, Spread> => ({
  ...{ p50: spread(p50), p90: spread(2 * p50), p99: spread(5 * p50) },
  ...{ p999: spread(9 * p50), max: spread(20 * p50) },
});

const fullLedger: Ledger = {
  acknowledged: 5001,
  inRedis: 5001,
  inClickHouse: 5001,
  distinctInClickHouse: 5001,
};

const peer = (target: string, perSecond: number, cpu: Measurement['cpu']): Measurement => ({
  ...{ target, throughput: spread(perSecond), cpu, memory: { server: 80 }, pipeline: null, ledger: null },
  ...{ offered: null, latency: latencyAround(64_000 / perSecond) },
});

/** @param cost factor of the cost of an answer */
export const service = (cost = 1, ledger: Ledger | null = fullLedger): Measurement => ({
  ...peer('skilltrace', 24_000 / cost, {
    'front end': spread(14 * cost),
    workers: spread(9 * cost),
    rest: spread(0.5 * cost),
    redis: spread(6.5 * cost),
    pipeline: spread(8 * cost),
    clickhouse: spread(10 * cost),
  }),
  pipeline: { rowsPerSecond: spread(20_000 / cost), lag: spread(1.5 * cost) },
  ledger,
});

const echo = peer('echo', 60_000, { server: spread(10) });

export const single = (measurement: Measurement): ScenarioResult => ({
  ...{ name: 'single', about: 'single answers', unit: 'answer' },
  measurements: [
    measurement,
    echo,
    peer('fastify', 4000, { server: spread(50), redis: spread(20) }),
    peer('fastify-outbox', 4000, { server: spread(30), redis: spread(18) }),
  ],
});

const atRate = (one: Measurement, offered: number): Measurement => ({
  ...{ ...one, offered, throughput: spread(offered), ledger: null },
});

/** @param target its CPU is four times the service's */
export const peers = (target = 'fastify-postgres'): ScenarioResult => {
  const postgres = peer(target, 1500, { server: spread(92), postgres: spread(100) });
  return {
    ...{ name: 'peers', about: 'comparable servers', unit: 'answer' },
    measurements: [echo, postgres, service(), atRate(postgres, 1000), atRate(service(2), 1000)],
  };
};

const batches: ScenarioResult = {
  ...{ name: 'batches', about: 'batches of two sizes', unit: 'answer' },
  measurements: [1, 100].map((size) => ({
    ...service(1 / Math.sqrt(size)),
    target: `skilltrace, ${size} per request`,
  })),
};

export const benchResults = (changes: Partial<BenchResults> = {}): BenchResults => ({
  ...{ format: 2, startedAt: '2026-03-01T10:20:30.000Z', form: 'short', seconds: 100 },
  noise: { cpu: [10, 12, 11], perSecond: [60_000, 50_000, 55_000] },
  machine: { processor: 'Test processor', cores: 2, memoryMb: 4096, system: 'Linux 6' },
  versions: { node: '20.0.0', skilltrace: '0.1.0', redis: '7.0.0' },
  commit: 'abcdef123456+',
  scenarios: [single(service()), peers(), batches],
  figures: [
    figure('CPU to the echo', spread(2.9), { atMost: 3.5 }),
    figure('CPU to Fastify', spread(1.1), { atMost: 1.2 }),
    figure('throughput to Fastify', spread(1.5), { atLeast: 1.8 }),
    figure('saturation', spread(24_000), null, 'answers/s'),
  ],
  ...changes,
});
