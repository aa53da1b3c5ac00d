/** Loads of the scenarios, and the search for the capacity. */
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadResult } from '../load/plan.js';
import { type Traffic, usualTraffic } from '../load/traffic.js';
import { findCapacity } from './capacity.js';
import { findMissed, type Objective } from './objectives.js';
import type { DeploymentArguments, LoadSettings, ScenarioName } from './options.js';
import {
  type CapacityStep,
  computeFigures,
  type DeploymentResults,
  type OperationSummary,
  summarizeScenario,
} from './results.js';
import type { Session } from './session.js';

export type Measured = Pick<DeploymentResults, 'operations' | 'capacity' | 'capacity_steps' | 'warnings'>;

type Progress = (text: string) => void;

const defaultConnections = { single: 64, batch: 8, mixed: 64, class: 8, burst: 64 } as const;
const defaultBurst = 200;
const firstRate = 100;
const graceMs = 30_000;
const stepGraceMs = 2000;
/** Between steps of the search, so that an overloaded step does not affect the next one. */
const stepPauseMs = 1000;
/** Above this share of busy time, the generator delays requests itself. */
const saturated = 0.8;

export async function measureScenarios(
  session: Session,
  args: DeploymentArguments,
  showProgress: Progress,
): Promise<Measured> {
  const { scenarios, rate, seconds, slo } = args.settings;
  showProgress('creating learners');
  await session.createLearners();
  const runner = createScenarioRunner(session, args, showProgress);
  if (slo !== null) return searchCapacity(runner, scenarios[0] as ScenarioName, args.settings, slo);
  const operations: Record<string, OperationSummary> = {};
  const warnings: string[] = [];
  for (const name of scenarios) {
    await runner.warmUp(name);
    const load = await runner.run(name, rate, seconds, graceMs);
    Object.assign(operations, summarizeScenario(name, load));
    warnings.push(...runner.findSaturation(name, load));
  }
  return { operations, capacity: null, capacity_steps: [], warnings };
}

type ScenarioRunner = ReturnType<typeof createScenarioRunner>;

function createScenarioRunner(session: Session, args: DeploymentArguments, showProgress: Progress) {
  const { settings, warmUp: warmUpSeconds } = args;
  let generators = args.generators ?? 1;
  const run = (
    name: ScenarioName,
    rate: number | null,
    seconds: number,
    graceMs: number,
  ): Promise<LoadResult> => {
    const title = rate === null ? name : `${name} at ${Math.round(rate)}/s`;
    return session.load({
      traffic: createTraffic(name, settings),
      connections: settings.connections ?? defaultConnections[name],
      ...(name === 'burst' ? { isBurst: true, rate: Math.ceil(rate ?? defaultBurst) } : { rate }),
      ...{ seconds, graceMs, generators },
      onProgress: (text) => showProgress(`${title}: ${text}`),
    });
  };
  /** Also finds the number of generators that the load needs. */
  const warmUp = async (name: ScenarioName): Promise<void> => {
    if (warmUpSeconds === 0) return;
    const { utilization } = await run(name, settings.rate, warmUpSeconds, graceMs);
    if (utilization > saturated && args.generators === null)
      generators = Math.min(2 * generators, availableParallelism());
  };
  const findSaturation = (name: ScenarioName, { utilization }: LoadResult): string[] => {
    if (utilization <= saturated) return [];
    const busy = `${name}: the load generator was busy ${Math.round(100 * utilization)} % of the time and may limit the result`;
    return [`${busy}; use --generators ${2 * generators}, or more machines`];
  };
  return { run, warmUp, findSaturation };
}

function createTraffic(name: ScenarioName, settings: LoadSettings): Traffic {
  const { distribution: order, event_ids: eventIds, learners, skills, items } = settings;
  const batch = name === 'batch' ? settings.batch : 1;
  const kind = name === 'mixed' || name === 'class' ? name : 'answers';
  return { ...usualTraffic, order, learners, skills, items, eventIds, batch, kind };
}

async function searchCapacity(
  runner: ScenarioRunner,
  name: ScenarioName,
  { rate, seconds }: LoadSettings,
  slo: readonly Objective[],
): Promise<Measured> {
  const capacity_steps: CapacityStep[] = [];
  const measureStep = async (offered: number) => {
    const load = await runner.run(name, offered, seconds, stepGraceMs);
    const summary = summarizeScenario(name, load)[name] as OperationSummary;
    const isMet = isRateReached(offered, load) && findMissed(slo, computeFigures(summary)).length === 0;
    capacity_steps.push({ offered, summary, isMet });
    await sleep(stepPauseMs);
    return { rate: offered, isMet, load, summary };
  };
  await runner.warmUp(name);
  const confirmed = await findCapacity(measureStep, rate ?? firstRate);
  const last = confirmed?.at(-1);
  if (!confirmed || !last) return { operations: {}, capacity: null, capacity_steps, warnings: [] };
  const p99_ms = Math.max(...confirmed.map(({ summary }) => summary.p99_ms));
  return {
    operations: summarizeScenario(name, last.load),
    capacity: { rate: last.rate, p99_ms },
    capacity_steps,
    warnings: runner.findSaturation(name, last.load),
  };
}

/** Otherwise requests wait longer the longer the load lasts. The usual latency after the end is no delay. */
const isRateReached = (offered: number, { requests, seconds, latency }: LoadResult): boolean =>
  requests >= 0.95 * offered * (seconds - latency.p50 / 1000);
