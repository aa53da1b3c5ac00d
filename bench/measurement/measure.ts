import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '../../src/lifecycle.js';
import type { LoadRunner } from '../load/load-runner.js';
import { createLocalEndpoint, type LoadPlan, type LoadResult } from '../load/plan.js';
import type { Traffic } from '../load/traffic.js';
import type { Service } from '../targets/service.js';
import { readCpuSeconds, readMemory, type Target } from '../targets/targets.js';

export type Tally = ReturnType<typeof createTally>;

/** `nextNumber`: of the next answer. No number is used twice. */
export const createTally = () => ({ acknowledged: 0, nextNumber: 0 });

export interface Contestant {
  readonly name: string;
  readonly target: Target;
  readonly key: string;
  readonly traffic: Traffic;
  readonly tally: Tally;
  /** Set if its pipeline drains during the load. */
  readonly drains: Service | null;
  /** Resolves when all work of the load is done, before CPU time is read. */
  readonly waitUntilSettled: (() => Promise<void>) | null;
  /** Default: the setting of the run. */
  readonly connections?: number;
  /** Requests per second; absent: closed loop. */
  readonly rate?: number;
}

export type LoadSettings = Pick<LoadPlan, 'connections' | 'seconds' | 'rate' | 'seed'>;

export interface Sample {
  readonly load: LoadResult;
  /** Answers; requests if the traffic only reads. */
  readonly units: number;
  readonly perSecond: number;
  /** µs per unit, by part. */
  readonly cpu: Readonly<Record<string, number>>;
  /** MB by part. */
  readonly memory: Readonly<Record<string, number>>;
  readonly pipeline: { readonly rowsPerSecond: number; readonly lag: number } | null;
}

/** @throws StartError if a request fails, or the pipeline exceeds its time limit */
export async function measureLoad(
  runner: LoadRunner,
  contestant: Contestant,
  settings: LoadSettings,
): Promise<Sample> {
  const { target, traffic, drains } = contestant;
  const before = readCpuSeconds(target);
  const { result, worst } = await withLag(drains, () => runLoad(runner, contestant, settings));
  const after = readCpuSeconds(target);
  const { load, settledSeconds } = result;
  const units = traffic.kind === 'answers' ? load.answers : load.requests;
  return {
    load,
    units,
    perSecond: units / load.seconds,
    cpu: computeCpuPerUnit(before, after, units),
    memory: readMemory(target),
    pipeline: drains === null ? null : { rowsPerSecond: load.answers / settledSeconds, lag: worst },
  };
}

async function runLoad(
  runner: LoadRunner,
  { name, target, traffic, key, tally, waitUntilSettled, connections }: Contestant,
  settings: LoadSettings,
): Promise<{ load: LoadResult; settledSeconds: number }> {
  const plan = {
    ...settings,
    connections: connections ?? settings.connections,
    endpoint: createLocalEndpoint(target.port, key),
    traffic,
    firstAnswer: tally.nextNumber,
    failsFast: true,
    graceMs: 20_000,
  };
  const since = performance.now();
  const load = await runner(plan).catch((cause: unknown) => {
    throw new StartError(`${name}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  });
  tally.acknowledged += load.answers;
  tally.nextNumber += load.numbersUsed;
  await waitUntilSettled?.();
  return { load, settledSeconds: (performance.now() - since) / 1000 };
}

/** Rounded to ns, because `rest` is a difference. Linux rounds the time of ended threads, so it could be negative. */
const computeCpuPerUnit = (
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
  units: number,
): Record<string, number> =>
  Object.fromEntries(
    Object.entries(after).map(([part, seconds]) => [
      part,
      Math.max(0, Math.round((1e9 * (seconds - (before[part] ?? 0))) / units) / 1000),
    ]),
  );

const lagPollMs = 250;

/** `worst`: maximum lag of ClickHouse, seconds. */
async function withLag<Result>(
  service: Service | null,
  work: () => Promise<Result>,
): Promise<{ result: Result; worst: number }> {
  if (service === null) return { result: await work(), worst: 0 };
  const done = new AbortController();
  const watch = pollWorstLag(service, done.signal);
  try {
    const result = await work();
    done.abort();
    return { result, worst: await watch };
  } finally {
    done.abort();
    await watch;
  }
}

async function pollWorstLag({ facts }: Service, done: AbortSignal): Promise<number> {
  const stopped = once(done, 'abort');
  let worst = 0;
  while (!done.aborted) {
    worst = Math.max(worst, (await facts()).oldestPendingSeconds);
    await Promise.race([sleep(lagPollMs), stopped]);
  }
  return worst;
}
