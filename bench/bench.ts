import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Closers } from '../src/lifecycle.js';
import type { LoadRunner } from './load/run.js';
import { type Contestant, measure } from './measure.js';
import { createPeers, type Peer, type PeerName } from './peers.js';
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
  readonly side: Pace;
  readonly glance: Pace;
  /** Seconds per target and kind of load; up to three times as long. */
  readonly warmUp: number;
}

export interface BenchOptions {
  readonly settings: Settings;
  readonly closers: Closers;
  readonly runner: LoadRunner;
  readonly progress: (text: string) => void;
  readonly root: string;
  readonly profile: boolean;
  readonly tenants: readonly string[];
}

export interface Bench extends BenchOptions {
  /** Starts on the first call. Each scenario has a separate tenant. */
  service(): Promise<Service>;
  peer(name: PeerName): Promise<Peer>;
  /** Kinds of load so far, by target. */
  readonly warmed: Set<string>;
}

export function createBench(options: BenchOptions): Bench {
  const { tenants, closers, profile } = options;
  let service: Promise<Service> | undefined;
  return {
    ...options,
    service: () => {
      service ??= ownService(options, 'service');
      return service;
    },
    peer: createPeers({ folder: folderFor(options, 'peers'), keys: tenants, profile, closers }),
    warmed: new Set(),
  };
}

function folderFor({ root }: BenchOptions, name: string): string {
  const path = join(root, name);
  mkdirSync(path, { recursive: true });
  return path;
}

export const ownService = (options: BenchOptions, name: string, form: ServiceForm = {}): Promise<Service> => {
  const { tenants, profile, closers } = options;
  return startSplitService({ dataDir: folderFor(options, name), tenants, profile, ...form }, closers);
};

/** V8 compiles after a number of calls, so time alone is no measure on a busy machine. */
const warmUnits = 100_000;
const mostWarmUps = 3;

export async function warm(
  { settings, runner, progress, warmed }: Bench,
  contestant: Contestant,
): Promise<void> {
  const { connections, warmUp: seconds } = settings;
  const { name, target, traffic } = contestant;
  const kind = `${target.port} ${traffic.kind} ${traffic.batch > 1}`;
  if (warmed.has(kind)) return;
  warmed.add(kind);
  progress(`${name} warms up`);
  for (let times = 0, units = 0; times < mostWarmUps && units < warmUnits; times++)
    units += (await measure(runner, contestant, { connections, seconds, rate: null })).units;
}

/** Contestants take turns, so that a slow minute of the machine affects all of them. */
export async function inTurns(bench: Bench, contestants: readonly Contestant[], pace: Pace): Promise<Rounds> {
  const { connections } = bench.settings;
  const rounds = new Rounds();
  for (const contestant of contestants) await warm(bench, contestant);
  for (let round = 1; round <= pace.rounds; round++) {
    for (const contestant of contestants) {
      const { name, rate = null } = contestant;
      bench.progress(`${name}, round ${round} of ${pace.rounds}`);
      rounds.add(name, await measure(bench.runner, contestant, { connections, seconds: pace.seconds, rate }));
    }
  }
  return rounds;
}

/** Answers per second in a closed loop. */
export async function saturationOf(bench: Bench, contestant: Contestant, pace: Pace): Promise<number> {
  const rounds = await inTurns(bench, [contestant], pace);
  return spreadOf(rounds.perSecond(contestant.name)).median;
}
