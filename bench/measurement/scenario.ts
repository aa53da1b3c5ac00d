import { createClosers } from '../../src/lifecycle.js';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { learnerId, newLearnerId, type Traffic, usualTraffic } from '../load/traffic.js';
import type { Figure, Ledger, Measurement, ScenarioResult, Spread } from '../results/results.js';
import { computeSpread } from '../results/spread.js';
import type { Peer, PeerName } from '../targets/peers.js';
import type { Service } from '../targets/service.js';
import { type Bench, measureInTurns, type Pace } from './bench.js';
import { checkLedger } from './ledger.js';
import { type Contestant, createTally, type Sample } from './measure.js';
import type { Rounds } from './rounds.js';
import { type AnswerGenerator, seedAnswers } from './seed.js';

/** Default: no axis, and the unit `answer`. */
export type ScenarioFinding = Pick<ScenarioResult, 'measurements'> &
  Partial<Pick<ScenarioResult, 'axis' | 'unit'>>;

export interface Findings {
  readonly results: readonly ScenarioFinding[];
  readonly figures: readonly Figure[];
}

export interface Scenario {
  /** As for --only; also the tenant. */
  readonly name: string;
  readonly about: string;
  /** Runs only with --full, or if named. */
  readonly isLong: boolean;
  run(bench: Bench): Promise<Findings>;
}

const maxCloseMs = 20_000;

export async function runScenario(bench: Bench, { name, about, run }: Scenario) {
  const closers = createClosers(createLogger('warn', 'bench'), maxCloseMs);
  bench.closers.add('servers of a scenario', () => closers.close());
  const progress = (text: string): void => bench.progress(`${name}: ${text}`);
  try {
    const { results, figures } = await run({ ...bench, closers, progress });
    const complete = (one: ScenarioFinding): ScenarioResult => ({
      ...{ name, about, axis: null, unit: 'answer' },
      ...one,
    });
    return { results: results.map(complete), figures };
  } finally {
    await closers.close();
  }
}

export interface LoadScenario extends Omit<Scenario, 'run'> {
  /** Default: `answer`. */
  readonly unit?: ScenarioResult['unit'];
  readonly pace: 'main' | 'side' | 'glance' | Pace;
  readonly peers?: readonly PeerName[];
  /** Default: `usualTraffic`. */
  readonly traffic?: Traffic;
  readonly seed?: { readonly answers: number; readonly seed: AnswerGenerator };
  /** Default: one contestant with `traffic`. */
  readonly contestants?: (
    usual: ServiceContestant,
    bench: Bench,
  ) => readonly Contestant[] | Promise<readonly Contestant[]>;
  readonly figures?: (rounds: Rounds) => Figure[];
}

export const createSharedScenario = (loads: LoadScenario): Scenario => ({
  ...loads,
  run: async (bench) => runLoadScenario(bench, await bench.service(), loads),
});

export async function runLoadScenario(
  bench: Bench,
  service: Service,
  loads: LoadScenario,
): Promise<Findings> {
  const { name, unit, pace, traffic = usualTraffic, seed } = loads;
  const peers = await Promise.all((loads.peers ?? []).map((peer) => bench.peer(peer)));
  const usual = createServiceContestant(service, name, traffic);
  if (seed !== undefined) {
    bench.progress('generating learners');
    await seedAnswers(usual, seed.answers, seed.seed);
  }
  const serviceContestants = (await loads.contestants?.(usual, bench)) ?? [usual];
  const contestants = [
    ...peers.map((peer) => createPeerContestant(peer, name, traffic)),
    ...serviceContestants,
  ];
  const rounds = await measureInTurns(
    bench,
    contestants,
    typeof pace === 'string' ? bench.settings[pace] : pace,
  );
  const ledger = await checkTenantLedger(usual);
  const measurementFor = (contestant: Contestant): Measurement => {
    const samples = rounds.getSamples(contestant.name);
    return buildMeasurement(contestant.axis ? service.name : contestant.name, samples, {
      ledger: contestant.target === service ? ledger : null,
    });
  };
  const results = serviceContestants.flatMap((one): ScenarioFinding[] =>
    one.axis ? [{ axis: one.axis, ...(unit && { unit }), measurements: [measurementFor(one)] }] : [],
  );
  if (results.length === 0)
    results.push({ ...(unit && { unit }), measurements: contestants.map(measurementFor) });
  return { results, figures: loads.figures?.(rounds) ?? [] };
}

export type ServiceContestant = Contestant & { readonly drains: Service };

export const createServiceContestant = (
  service: Service,
  tenant: string,
  traffic: Traffic,
): ServiceContestant => ({
  name: service.name,
  target: service,
  key: tenant,
  traffic,
  tally: createTally(),
  drains: service,
  waitUntilSettled: service.drainImmediately,
});

/** Waits for the scheduled drain, to measure its cost and lag. */
export const withScheduledDrain = (contestant: ServiceContestant): ServiceContestant => ({
  ...contestant,
  waitUntilSettled: contestant.drains.waitUntilDrained,
});

export const createPeerContestant = (target: Peer, key: string, traffic: Traffic): Contestant => ({
  name: target.name,
  target,
  key,
  traffic,
  tally: createTally(),
  drains: null,
  waitUntilSettled: null,
});

/** All learners of the tenant must have ids of one kind. */
export function checkTenantLedger(contestant: ServiceContestant): Promise<Ledger> {
  const { newLearners, learners, skillsPerAnswer } = contestant.traffic;
  const userIds = newLearners
    ? indices(contestant.tally.nextNumber).map((i) => newLearnerId(i))
    : indices(learners).map((i) => learnerId(i));
  return checkLedger(contestant, userIds, skillsPerAnswer);
}

export function buildMeasurement(
  target: string,
  samples: readonly Sample[],
  more: Partial<Measurement> = {},
): Measurement {
  const parts = Object.keys(samples[0]?.cpu ?? {});
  const each = (pick: (sample: Sample) => number): Spread => computeSpread(samples.map(pick));
  const drained = samples.flatMap(({ pipeline }) => (pipeline === null ? [] : [pipeline]));
  return {
    target,
    offered: samples[0]?.load.offered ?? null,
    throughput: each(({ perSecond }) => perSecond),
    cpu: Object.fromEntries(parts.map((part) => [part, each(({ cpu }) => cpu[part] ?? 0)])),
    latency: {
      p50: each(({ load }) => load.latency.p50),
      p90: each(({ load }) => load.latency.p90),
      p99: each(({ load }) => load.latency.p99),
      p999: each(({ load }) => load.latency.p999),
      max: each(({ load }) => load.latency.max),
    },
    memory: findLargest(samples.map(({ memory }) => memory)),
    pipeline:
      drained.length === 0
        ? null
        : {
            rowsPerSecond: computeSpread(drained.map(({ rowsPerSecond }) => rowsPerSecond)),
            lag: computeSpread(drained.map(({ lag }) => lag)),
          },
    ledger: null,
    ...more,
  };
}

const findLargest = (records: readonly Readonly<Record<string, number>>[]): Record<string, number> =>
  Object.fromEntries(
    Object.keys(records[0] ?? {}).map((part) => [
      part,
      Math.max(...records.map((record) => record[part] ?? 0)),
    ]),
  );
