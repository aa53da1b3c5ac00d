/** What a scenario is, and how its samples become results. */
import type { Bench } from './bench.js';
import { checkLedger, newTally, type Tally } from './ledger.js';
import { learnerId, newLearnerId, type Traffic } from './load/traffic.js';
import type { Contestant, Sample } from './measure.js';
import type { Peer } from './peers.js';
import type { Figure, Ledger, Measurement, ScenarioResult, Spread } from './results.js';
import type { Service } from './service.js';
import { spreadOf } from './spread.js';

export interface Findings {
  readonly results: readonly ScenarioResult[];
  readonly figures: readonly Figure[];
}

export interface Scenario {
  /** As for --only; the tenant of its answers too. */
  readonly name: string;
  readonly about: string;
  /** Whether only --full runs it unasked. */
  readonly long: boolean;
  run(bench: Bench): Promise<Findings>;
}

/** The service under a kind of load. */
export const serviceContestant = (
  service: Service,
  tenant: string,
  traffic: Traffic,
  tally: Tally = newTally(),
): Contestant => ({
  name: service.name,
  target: service,
  key: tenant,
  traffic,
  tally,
  drains: service,
  settled: service.hurried,
});

/** The same with the pipeline left to its own pace, for what it costs and how far it lags. */
export const atItsPace = (service: Service, tenant: string, traffic: Traffic, tally: Tally): Contestant => ({
  ...serviceContestant(service, tenant, traffic, tally),
  settled: service.drained,
});

export const peerContestant = (target: Peer, key: string, traffic: Traffic): Contestant => ({
  name: target.name,
  target,
  key,
  traffic,
  tally: newTally(),
  drains: null,
  settled: target.settled,
});

/** Checks the answers of a tenant whose learners all have one kind of name. */
export function ledgerOf(service: Service, tenant: string, traffic: Traffic, tally: Tally): Promise<Ledger> {
  const { newLearners, learners } = traffic;
  const userIds = newLearners
    ? Array.from({ length: tally.nextNumber }, (_, i) => newLearnerId(i))
    : Array.from({ length: learners }, (_, i) => learnerId(i));
  return checkLedger(service, tenant, userIds, tally);
}

/** CPU of all parts, or of some, in each round. */
export const cpuSums = (samples: readonly Sample[], parts?: readonly string[]): number[] =>
  samples.map(({ cpu }) =>
    Object.entries(cpu).reduce(
      (sum, [part, micros]) => (parts === undefined || parts.includes(part) ? sum + micros : sum),
      0,
    ),
  );

/** Of each round. */
export const perSeconds = (samples: readonly Sample[]): number[] => samples.map(({ perSecond }) => perSecond);

export function measurementOf(
  target: string,
  samples: readonly Sample[],
  more: Partial<Measurement> = {},
): Measurement {
  const parts = Object.keys(samples[0]?.cpu ?? {});
  const each = (pick: (sample: Sample) => number): Spread => spreadOf(samples.map(pick));
  const drained = samples.flatMap(({ pipeline }) => (pipeline === null ? [] : [pipeline]));
  return {
    target,
    throughput: each(({ perSecond }) => perSecond),
    cpu: Object.fromEntries(parts.map((part) => [part, each(({ cpu }) => cpu[part] ?? 0)])),
    latencies: [],
    memory: largest(samples.map(({ memory }) => memory)),
    pipeline:
      drained.length === 0
        ? null
        : {
            rowsPerSecond: spreadOf(drained.map(({ rowsPerSecond }) => rowsPerSecond)),
            lag: spreadOf(drained.map(({ lag }) => lag)),
          },
    ledger: null,
    ...more,
  };
}

const largest = (records: readonly Readonly<Record<string, number>>[]): Record<string, number> =>
  Object.fromEntries(
    Object.keys(records[0] ?? {}).map((part) => [
      part,
      Math.max(...records.map((record) => record[part] ?? 0)),
    ]),
  );
