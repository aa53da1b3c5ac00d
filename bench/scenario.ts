/** What a scenario is, and how its samples become results. */
import { type Bench, inTurns, type Pace } from './bench.js';
import { checkLedger, newTally, type Tally } from './ledger.js';
import { learnerId, newLearnerId, type Traffic, usualTraffic } from './load/traffic.js';
import type { Contestant, Sample } from './measure.js';
import type { Peer, PeerName } from './peers.js';
import type { Figure, Ledger, Measurement, ScenarioResult, Spread } from './results.js';
import { latencyOf, type Rounds } from './rounds.js';
import { type Seed, seedAnswers } from './seed.js';
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

/** Contestants in turns on one service, which may run beside peers. */
export interface Loads extends Omit<Scenario, 'run'> {
  /** `answer` if not set. */
  readonly unit?: ScenarioResult['unit'];
  readonly pace: 'main' | 'side' | 'glance' | Pace;
  readonly peers?: readonly PeerName[];
  /** `usualTraffic` if not set. */
  readonly traffic?: Traffic;
  /** Answers before the measurement. */
  readonly seed?: { readonly answers: number; readonly seed: Seed };
  /** Makes the service's contestants from the one under `traffic`. */
  readonly contestants?: (usual: Contestant, service: Service) => readonly Contestant[];
  /** Requests per second by contestant, for open loops. */
  readonly rates?: (bench: Bench, contestants: readonly Contestant[]) => Promise<ReadonlyMap<string, number>>;
  readonly figures?: (rounds: Rounds) => Figure[];
}

/** A scenario on the service that scenarios share. */
export const onSharedService = (loads: Loads): Scenario => ({
  ...loads,
  run: async (bench) => measureLoads(bench, await bench.service(), loads),
});

export async function measureLoads(bench: Bench, service: Service, loads: Loads): Promise<Findings> {
  const { name, about, unit = 'answer', pace, traffic = usualTraffic, seed } = loads;
  const peers = await Promise.all((loads.peers ?? []).map((peer) => bench.peer(peer)));
  const tally = newTally();
  if (seed !== undefined) {
    bench.progress(`${name}: learners are made`);
    await seedAnswers(service, name, tally, seed.answers, seed.seed);
  }
  const usual = serviceContestant(service, name, traffic, tally);
  const ours = loads.contestants?.(usual, service) ?? [usual];
  const contestants = [...peers.map((peer) => peerContestant(peer, name, traffic)), ...ours];
  const rates = await loads.rates?.(bench, contestants);
  const turns = { scenario: name, pace: typeof pace === 'string' ? bench.settings[pace] : pace, rates };
  const rounds = await inTurns(bench, contestants, turns);
  const ledger = await ledgerOf(service, name, traffic, tally);
  const measured = (contestant: Contestant): Measurement => {
    const samples = rounds.of(contestant.name);
    return measurementOf(contestant.axis ? service.name : contestant.name, samples, {
      ...(rates?.has(contestant.name) && { throughput: null, latencies: [latencyOf(samples)] }),
      ledger: contestant.target === service ? ledger : null,
    });
  };
  const results = ours.flatMap((one): ScenarioResult[] =>
    one.axis ? [{ name, about, axis: one.axis, unit, measurements: [measured(one)] }] : [],
  );
  if (results.length === 0)
    results.push({ name, about, axis: null, unit, measurements: contestants.map(measured) });
  return { results, figures: loads.figures?.(rounds) ?? [] };
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

/** Leaves the pipeline to its own pace, to measure its cost and its lag. */
export const atItsPace = (contestant: Contestant, { drained }: Service): Contestant => ({
  ...contestant,
  settled: drained,
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
