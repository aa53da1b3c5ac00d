/** A run of the benchmark: its settings, the targets that scenarios share, and how they take turns. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Closers, createClosers } from '../src/lifecycle.js';
import { createLogger } from '../src/telemetry.js';
import type { LoadRunner } from './load/run.js';
import { type Contestant, measure } from './measure.js';
import { createPeers, type Peer, type PeerName, type Peers } from './peers.js';
import { Rounds } from './rounds.js';
import { type Service, type ServiceForm, startSplitService } from './service.js';
import { spreadOf } from './spread.js';

export interface Pace {
  readonly rounds: number;
  readonly seconds: number;
}

export interface Settings {
  readonly full: boolean;
  readonly connections: number;
  readonly main: Pace;
  /** Shorter, so that the short form stays short. */
  readonly side: Pace;
  /** For what is only looked at. */
  readonly glance: Pace;
  /** Seconds of load before a target is measured for the first time with a kind of request; twice or three times so long where that was too little. */
  readonly warmUp: number;
}

export interface Bench {
  readonly settings: Settings;
  readonly closers: Closers;
  readonly runner: LoadRunner;
  readonly progress: (text: string) => void;
  /** The service that scenarios share, each with a tenant of its own; started when first asked for. */
  service(): Promise<Service>;
  /** One that a scenario has for itself, until the closers close. */
  ownService(name: string, closers: Closers, form?: ServiceForm): Promise<Service>;
  peer(name: PeerName): Promise<Peer>;
  /** Puts a load on a target that had none of its kind yet: V8 compiles what it meets often, and takes seconds for it. */
  warm(scenario: string, contestant: Contestant): Promise<void>;
}

export interface BenchOptions extends Pick<Bench, 'settings' | 'closers' | 'runner' | 'progress'> {
  readonly root: string;
  /** Threads can be asked for profiles. */
  readonly profile?: boolean;
  readonly tenants: readonly string[];
}

export function createBench(options: BenchOptions): Bench {
  const { root, tenants, closers, profile = false } = options;
  const folder = (name: string): string => {
    const path = join(root, name);
    mkdirSync(path, { recursive: true });
    return path;
  };
  const ownService = (name: string, until: Closers, form: ServiceForm = {}): Promise<Service> =>
    startSplitService({ dataDir: folder(name), tenants, profile, ...form }, until);
  let service: Promise<Service> | undefined;
  const peers: Peers = createPeers({ folder: folder('peers'), keys: tenants, profile, closers });
  return {
    ...options,
    ownService,
    service: () => {
      service ??= ownService('service', closers);
      return service;
    },
    peer: peers.start,
    warm: createWarmUp(options),
  };
}

/** V8 compiles by how often code runs, not by the clock: on a busy machine seconds alone are too few. */
const warmUnits = 100_000;
const mostWarmUps = 3;

function createWarmUp({ settings, runner, progress }: BenchOptions): Bench['warm'] {
  const { connections, warmUp: seconds } = settings;
  const warm = new Set<string>();
  return async (scenario, contestant) => {
    const { name, target, traffic } = contestant;
    const kind = `${target.port} ${traffic.kind} ${traffic.batch > 1}`;
    if (warm.has(kind)) return;
    warm.add(kind);
    progress(`${scenario}: ${name} warms up`);
    for (let times = 0, units = 0; times < mostWarmUps && units < warmUnits; times++)
      units += (await measure(runner, contestant, { connections, seconds, rate: null })).units;
  };
}

const closeMs = 20_000;

/** Closes what the work has opened when it is over, and when the run is stopped. */
export async function withClosers<Result>(
  { closers }: Bench,
  work: (own: Closers) => Promise<Result>,
): Promise<Result> {
  const own = createClosers(createLogger('warn', 'bench'), closeMs);
  closers.add('servers of a scenario', () => own.close());
  try {
    return await work(own);
  } finally {
    await own.close();
  }
}

export interface Turns {
  readonly scenario: string;
  readonly pace: Pace;
  /** Requests per second by contestant. Contestants without a rate run in a closed loop. */
  readonly rates?: ReadonlyMap<string, number> | undefined;
}

/** Measures contestants in turns, so that a slow minute of the machine affects all of them. */
export async function inTurns(
  { settings: { connections }, runner, progress, warm }: Bench,
  contestants: readonly Contestant[],
  { scenario, pace, rates }: Turns,
): Promise<Rounds> {
  const rounds = new Rounds();
  for (const contestant of contestants) await warm(scenario, contestant);
  for (let round = 1; round <= pace.rounds; round++) {
    for (const contestant of contestants) {
      const { name } = contestant;
      progress(`${scenario}: ${name}, round ${round} of ${pace.rounds}`);
      const settings = { connections, seconds: pace.seconds, rate: rates?.get(name) ?? null };
      rounds.add(name, await measure(runner, contestant, settings));
    }
  }
  return rounds;
}

/**
 * Answers a second in a closed loop, the median of the rounds. It uses the generator of the open loop, because a cheaper
 * generator leaves the servers more of the machine.
 */
export async function saturationOf(
  { settings, runner, progress, warm }: Bench,
  contestant: Contestant,
  { scenario, pace: { rounds, seconds } }: Turns,
  connections = settings.connections,
): Promise<number> {
  await warm(scenario, contestant);
  progress(`${scenario}: ${contestant.name}, saturation`);
  const closedLoop = { connections, seconds, rate: null, ownGenerator: true };
  const found: number[] = [];
  while (found.length < rounds) found.push((await measure(runner, contestant, closedLoop)).perSecond);
  return spreadOf(found).median;
}
