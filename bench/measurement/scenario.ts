import { createClosers } from '../../src/lifecycle.js';
import { indices } from '../../src/lists.js';
import { createLogger } from '../../src/logger.js';
import { learnerId, type Traffic, usualTraffic } from '../load/traffic.js';
import type { Figure, Ledger, Measurement, ScenarioResult, Spread } from '../results/results.js';
import { computeSpread } from '../results/spread.js';
import type { Peer, PeerName } from '../targets/peers.js';
import type { Service } from '../targets/service.js';
import { type Bench, measureInTurns } from './bench.js';
import { checkLedger } from './ledger.js';
import { type Contestant, createTally, type Sample } from './measure.js';
import type { Rounds } from './rounds.js';
import { type AnswerGenerator, seedAnswers } from './seed.js';

export interface Findings {
  /** Default: `answer`. */
  readonly unit?: ScenarioResult['unit'];
  readonly measurements: readonly Measurement[];
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
    const { unit = 'answer', measurements, figures } = await run({ ...bench, closers, progress });
    return { result: { name, about, unit, measurements }, figures };
  } finally {
    await closers.close();
  }
}

export interface LoadScenario extends Omit<Scenario, 'run'> {
  /** Default: `answer`. */
  readonly unit?: ScenarioResult['unit'];
  readonly pace: 'main' | 'side';
  readonly peers?: readonly PeerName[];
  /** Default: `usualTraffic`. */
  readonly traffic?: Traffic;
  readonly seed?: { readonly answers: number; readonly seed: AnswerGenerator };
  /** Default: one contestant with `traffic`. */
  readonly contestants?: (usual: ServiceContestant) => readonly Contestant[];
  readonly figures?: (rounds: Rounds) => Figure[];
}

export const createSharedScenario = (loads: LoadScenario): Scenario => ({
  ...loads,
  run: (bench) => runLoadScenario(bench, loads),
});

async function runLoadScenario(bench: Bench, loads: LoadScenario): Promise<Findings> {
  const { name, unit, pace, traffic = usualTraffic, seed } = loads;
  const service = await bench.service();
  const peers = await Promise.all((loads.peers ?? []).map((peer) => bench.peer(peer)));
  const usual = createServiceContestant(service, name, traffic);
  if (seed !== undefined) {
    bench.progress('generating learners');
    await seedAnswers(usual, seed.answers, seed.seed);
  }
  const contestants = [
    ...peers.map((peer) => createPeerContestant(peer, name, traffic)),
    ...(loads.contestants?.(usual) ?? [usual]),
  ];
  const rounds = await measureInTurns(bench, contestants, bench.settings[pace]);
  const ledger = await checkTenantLedger(usual);
  const measurements = contestants.map(({ name: target, drains }) =>
    buildMeasurement(target, rounds.getSamples(target), { ledger: drains === null ? null : ledger }),
  );
  return { ...(unit && { unit }), measurements, figures: loads.figures?.(rounds) ?? [] };
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

export function checkTenantLedger(contestant: ServiceContestant): Promise<Ledger> {
  const { learners, skillsPerAnswer } = contestant.traffic;
  const userIds = indices(learners).map((i) => learnerId(i));
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
