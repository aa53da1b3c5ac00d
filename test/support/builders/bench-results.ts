/** Invented results of the benchmark: three targets, latencies, growth, and goals. */
import type {
  BenchResults,
  Figure,
  Latency,
  Ledger,
  Measurement,
  ScenarioResult,
  Spread,
} from '../../../bench/results/results.js';

export const spread = (median: number, noise = 0.02, rounds = 5): Spread => ({
  ...{ median, low: median * (1 - noise), high: median * (1 + noise), rounds },
});

export const figure = (name: string, value: Spread, goal: Figure['goal'], unit = 'times'): Figure => ({
  ...{ name, about: `about ${name}`, unit, value, goal },
});

const latencyAt = (offered: number, capacity: number): Latency => {
  const p50 = offered < capacity ? 0.3 + offered / capacity : 500;
  const achieved = Math.min(offered, capacity);
  return { offered, achieved, p50, p90: 2 * p50, p99: 5 * p50, p999: 9 * p50, max: 20 * p50 };
};

const fullLedger: Ledger = {
  ...{ acknowledged: 5000, unanswered: 3, inRedis: 5001, inClickHouse: 5001, distinctInClickHouse: 5001 },
};

const peer = (target: string, perSecond: number, cpu: Measurement['cpu']): Measurement => ({
  ...{ target, throughput: spread(perSecond), cpu, memory: { server: 80 }, pipeline: null, ledger: null },
  latencies: [1000, 2000, 5000, 10_000].map((offered) => latencyAt(offered, perSecond)),
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

/** @param pace factor by which the machine is slower */
export const single = (measurement: Measurement, pace = 1): ScenarioResult => ({
  ...{ name: 'single', about: 'single answers', axis: null, unit: 'answer' },
  measurements: [
    measurement,
    peer('echo', 60_000 / pace, { server: spread(10 * pace) }),
    peer('fastify', 4000 / pace, { server: spread(50 * pace), redis: spread(20 * pace) }),
  ],
});

const grown = (name: string, label: string, value: number, cost: number): ScenarioResult => ({
  ...{ name, about: `more ${label}`, axis: { label, value }, unit: 'answer' },
  measurements: [{ ...service(cost), latencies: [] }],
});

export const benchResults = (changes: Partial<BenchResults> = {}): BenchResults => ({
  ...{ format: 1, startedAt: '2026-03-01T10:20:30.000Z', form: 'short', seconds: 100 },
  noise: { cpu: [10, 12, 11], perSecond: [60_000, 50_000, 55_000] },
  machine: { processor: 'Test processor', cores: 2, memoryMb: 4096, system: 'Linux 6' },
  versions: { node: '20.0.0', skilltrace: '0.1.0', redis: '7.0.0' },
  commit: 'abcdef123456+',
  scenarios: [
    single(service()),
    ...[1e3, 1e4, 1e5, 1e6].map((learners, i) => grown('growth', 'learners', learners, 1 + i / 20)),
    ...[1, 2, 4].map((processes) => grown('processes', 'API processes', processes, 1)),
  ],
  figures: [
    { ...figure('CPU to the echo', spread(2.9), { atMost: 3.5 }), aim: 3 },
    { ...figure('CPU to Fastify', spread(1.1), { atMost: 1.2 }), aim: 1 },
    figure('throughput to Fastify', spread(1.5), { atLeast: 1.8 }),
    figure('saturation', spread(24_000), null, 'answers/s'),
  ],
  ...changes,
});
