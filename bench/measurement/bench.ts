import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Closers } from '../../src/lifecycle.js';
import type { LoadRunner } from '../load/load-runner.js';
import { createPeers, type Peer, type PeerName } from '../targets/peers.js';
import { type Service, startSplitService } from '../targets/service.js';
import { type Contestant, measureLoad } from './measure.js';
import { Rounds } from './rounds.js';

export interface Pace {
  readonly rounds: number;
  readonly seconds: number;
}

export interface BenchSettings {
  readonly full: boolean;
  readonly connections: number;
  readonly main: Pace;
  readonly side: Pace;
  /** Seconds per target and kind of load; up to three times as long. */
  readonly warmUp: number;
}

export interface BenchOptions {
  readonly settings: BenchSettings;
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
  readonly warmedTargets: Set<string>;
}

export function createBench(options: BenchOptions): Bench {
  const { tenants, closers, profile } = options;
  let service: Promise<Service> | undefined;
  return {
    ...options,
    service: () => {
      service ??= startDedicatedService(options, 'service');
      return service;
    },
    peer: createPeers({ folder: createFolder(options, 'peers'), keys: tenants, profile, closers }),
    warmedTargets: new Set(),
  };
}

function createFolder({ root }: BenchOptions, name: string): string {
  const path = join(root, name);
  mkdirSync(path, { recursive: true });
  return path;
}

export const startDedicatedService = (options: BenchOptions, name: string): Promise<Service> => {
  const { tenants, profile, closers } = options;
  return startSplitService({ dataDir: createFolder(options, name), tenants, profile }, closers);
};

/** V8 compiles after a number of calls, so time alone is no measure on a busy machine. */
const minWarmUnits = 100_000;
const maxWarmUps = 3;

export async function warmUpTarget(
  { settings, runner, progress, warmedTargets }: Bench,
  contestant: Contestant,
): Promise<void> {
  const { connections, warmUp: seconds } = settings;
  const { name, target, traffic } = contestant;
  const kind = `${target.port} ${traffic.kind} ${traffic.batch > 1}`;
  if (warmedTargets.has(kind)) return;
  warmedTargets.add(kind);
  progress(`warming up ${name}`);
  for (let times = 0, units = 0; times < maxWarmUps && units < minWarmUnits; times++)
    units += (await measureLoad(runner, contestant, { connections, seconds, rate: null, seed: 0 })).units;
}

/** Contestants take turns, so that a slow minute of the machine affects all of them. */
export async function measureInTurns(
  bench: Bench,
  contestants: readonly Contestant[],
  pace: Pace,
): Promise<Rounds> {
  const { connections } = bench.settings;
  const rounds = new Rounds();
  for (const contestant of contestants) await warmUpTarget(bench, contestant);
  for (let round = 1; round <= pace.rounds; round++) {
    for (const contestant of contestants) {
      const { name, rate = null } = contestant;
      bench.progress(`${name}, round ${round} of ${pace.rounds}`);
      rounds.add(
        name,
        await measureLoad(bench.runner, contestant, {
          connections,
          seconds: pace.seconds,
          rate,
          seed: round,
        }),
      );
    }
  }
  return rounds;
}
