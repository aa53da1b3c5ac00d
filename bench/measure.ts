/** Puts one load on one target and measures its cost. */
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
  /** The service if its pipeline drains during the load. */
  readonly drains: Service | null;
  /** Resolves when all work caused by the load is done. CPU time is read after it. */
  readonly settled: (() => Promise<void>) | null;
  /** If set, the measurement is a separate result at this place of an axis. */
  readonly axis?: NonNullable<ScenarioResult['axis']>;
  /** Default: those of the run. */
  readonly connections?: number;
  /** Requests per second; without it, a closed loop. */
  readonly rate?: number;
  /** A 503 is an outcome, not a failure. */
  readonly mayRefuse?: boolean;
  /** The pipeline of this service is paused during the load and drained after the measurement. */
  readonly paused?: Service;
  /** Further work during the load, until the signal. */
  readonly beside?: (end: AbortSignal) => Promise<void>;
}

export type LoadSettings = Pick<LoadPlan, 'connections' | 'seconds' | 'rate'>;

export interface Sample {
  readonly load: LoadResult;
  /** Answers, or requests if the traffic only reads. */
  readonly units: number;
  readonly perSecond: number;
  /** CPU microseconds per unit, by part. */
  readonly cpu: Readonly<Record<string, number>>;
  /** MB by part. */
  readonly memory: Readonly<Record<string, number>>;
  readonly pipeline: { readonly rowsPerSecond: number; readonly lag: number } | null;
}

/** @throws StartError if a request fails or the pipeline exceeds its limit */
export async function measure(
  runner: LoadRunner,
  contestant: Contestant,
  settings: LoadSettings,
): Promise<Sample> {
  contestant.paused?.pause();
  const end = new AbortController();
  const beside = contestant.beside?.(end.signal);
  // A failure is thrown at the end, by `await beside`.
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
  // The service may have counted an answer that it rejected because Redis was too slow.
  tally.unanswered += load.refused;
  tally.nextNumber += load.numbersUsed;
  await settled?.();
  return { load, settledSeconds: (performance.now() - since) / 1000 };
}

/** At least 0: `rest` can come out negative, because Linux counts processes in hundredths of a second and threads exactly. */
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

/** Polls the lag of ClickHouse during the work. @returns its maximum in seconds as `worst` */
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
