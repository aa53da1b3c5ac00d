import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '../src/lifecycle.js';
import type { LoadPlan, LoadResult } from './load/plan.js';
import type { LoadRunner } from './load/run.js';
import type { Traffic } from './load/traffic.js';
import type { ScenarioResult } from './results.js';
import type { Service } from './service.js';
import { cpuOf, memoryOf, type Target } from './targets.js';

export type Tally = ReturnType<typeof newTally>;

/** `nextNumber`: of the next answer. No number is used twice. */
export const newTally = () => ({ acknowledged: 0, unanswered: 0, nextNumber: 0 });

export interface Contestant {
  readonly name: string;
  readonly target: Target;
  readonly key: string;
  readonly traffic: Traffic;
  readonly tally: Tally;
  /** Set if its pipeline drains during the load. */
  readonly drains: Service | null;
  /** Resolves when all work of the load is done, before CPU time is read. */
  readonly settled: (() => Promise<void>) | null;
  /** The measurement becomes a separate result at this place. */
  readonly axis?: NonNullable<ScenarioResult['axis']>;
  /** Default: the setting of the run. */
  readonly connections?: number;
  /** Requests per second; absent: closed loop. */
  readonly rate?: number;
  /** Counts a 503 instead of failing. */
  readonly mayRefuse?: boolean;
  /** Its pipeline pauses during the load and drains afterwards. */
  readonly paused?: Service;
  /** Runs during the load, until the signal. */
  readonly beside?: (end: AbortSignal) => Promise<void>;
}

export type LoadSettings = Pick<LoadPlan, 'connections' | 'seconds' | 'rate'>;

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
export async function measure(
  runner: LoadRunner,
  contestant: Contestant,
  settings: LoadSettings,
): Promise<Sample> {
  contestant.paused?.pause();
  const end = new AbortController();
  const beside = contestant.beside?.(end.signal);
  // The `await` below throws the error.
  beside?.catch(() => undefined);
  try {
    return await measureRunning(runner, contestant, settings);
  } finally {
    end.abort();
    await beside;
    contestant.paused?.resume();
    await contestant.paused?.hurried();
  }
}

async function measureRunning(
  runner: LoadRunner,
  contestant: Contestant,
  settings: LoadSettings,
): Promise<Sample> {
  const { target, traffic, drains } = contestant;
  const before = cpuOf(target);
  const { result, worst } = await withLag(drains, () => putLoad(runner, contestant, settings));
  const after = cpuOf(target);
  const { load, settledSeconds } = result;
  const units = traffic.kind === 'answers' ? load.answers : load.requests;
  return {
    load,
    units,
    perSecond: units / load.seconds,
    cpu: cpuPerUnit(before, after, units),
    memory: memoryOf(target),
    pipeline: drains === null ? null : { rowsPerSecond: load.answers / settledSeconds, lag: worst },
  };
}

async function putLoad(
  runner: LoadRunner,
  { name, target, traffic, key, tally, settled, connections, mayRefuse = false }: Contestant,
  settings: LoadSettings,
): Promise<{ load: LoadResult; settledSeconds: number }> {
  const plan = {
    ...settings,
    connections: connections ?? settings.connections,
    mayRefuse,
    port: target.port,
    pool: runner.pool(traffic, key),
    firstAnswer: tally.nextNumber,
  };
  const since = performance.now();
  const load = await runner.run(plan).catch((cause: unknown) => {
    throw new StartError(`${name}: ${cause instanceof Error ? cause.message : cause}`, { cause });
  });
  tally.acknowledged += load.answers;
  // The service may have counted a rejected answer if Redis was slow.
  tally.unanswered += load.refused;
  tally.nextNumber += load.numbersUsed;
  await settled?.();
  return { load, settledSeconds: (performance.now() - since) / 1000 };
}

/** Linux rounds the time of processes but not of threads, so `rest` could be negative. */
const cpuPerUnit = (
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
  units: number,
): Record<string, number> =>
  Object.fromEntries(
    Object.entries(after).map(([part, seconds]) => [
      part,
      Math.max(0, (1e6 * (seconds - (before[part] ?? 0))) / units),
    ]),
  );

const lagLookMs = 250;

/** `worst`: maximum lag of ClickHouse, seconds. */
async function withLag<Result>(
  service: Service | null,
  work: () => Promise<Result>,
): Promise<{ result: Result; worst: number }> {
  if (service === null) return { result: await work(), worst: 0 };
  const done = new AbortController();
  const watch = worstLag(service, done.signal);
  try {
    const result = await work();
    done.abort();
    return { result, worst: await watch };
  } finally {
    done.abort();
    await watch;
  }
}

async function worstLag({ facts }: Service, done: AbortSignal): Promise<number> {
  const stopped = once(done, 'abort');
  let worst = 0;
  while (!done.aborted) {
    worst = Math.max(worst, (await facts()).oldestPendingSeconds);
    await Promise.race([sleep(lagLookMs), stopped]);
  }
  return worst;
}
