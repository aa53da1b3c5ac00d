/** `npm run bench -- --url`: loads a running deployment. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CommandContext, defineCommand } from '../../src/cli/support/command.js';
import { Skilltrace, SkilltraceError } from '../../src/client/index.js';
import { describeConnectionError } from '../../src/connection-problem.js';
import { StartError } from '../../src/lifecycle.js';
import { createLoadRunner } from '../load/load-runner.js';
import type { LoadResult } from '../load/plan.js';
import { type Traffic, usualTraffic } from '../load/traffic.js';
import { findCapacity } from './capacity.js';
import { findMissed, type Objective, parseObjectives } from './objectives.js';
import { type DeploymentArguments, deploymentArguments, type ScenarioName } from './options.js';
import { formatDeployment, writeDeploymentReport } from './report.js';
import {
  type CapacityStep,
  computeFigures,
  type DeploymentResults,
  type OperationSummary,
  summarizeScenario,
} from './results.js';
import { benchPrefix, createSession, listUsedLearners, type Session } from './session.js';
import { checkKey, listBenchLearners, requireBenchTenant, startErasures, waitUntilErased } from './tenant.js';
import { findDifference, verifyAnswers } from './verify.js';

const defaults = {
  ...{
    connections: 64,
    heavyConnections: 8,
    seconds: 10,
    stepSeconds: 5,
    warmUp: 3,
    burst: 200,
    firstRate: 100,
  },
  ...{ skills: 50, batch: 100, slo: 'p99=50ms,errors=0.1%' },
};
const graceMs = 30_000;
const stepGraceMs = 2000;
/** Between steps of the search, so that an overloaded step does not affect the next one. */
const stepPauseMs = 1000;
/** Above this share of busy time, the generator delays requests itself. */
const saturated = 0.8;

export const loadDeployment = defineCommand({
  name: 'bench',
  ...deploymentArguments,
  run: async (context, args) => {
    try {
      await runLoadTest(context, args);
    } catch (error) {
      if (!(error instanceof SkilltraceError)) throw error;
      const reason =
        error.code === 'NETWORK_ERROR' ? describeConnectionError(error.cause).text : error.message;
      throw new StartError(`${args.address.baseUrl}: ${reason}`, { cause: error });
    }
  },
});

async function runLoadTest(context: CommandContext, args: DeploymentArguments): Promise<void> {
  const { address, learners } = args;
  const key = args.key ?? context.env.SKILLTRACE_KEY;
  if (!key) throw new StartError('Pass --key KEY, or set the variable SKILLTRACE_KEY');
  const startedAt = new Date().toISOString();
  const client = new Skilltrace({ baseUrl: address.baseUrl, apiKey: key });
  const warnings = await checkTarget(client, args);
  const cleanedBefore = args['clean-up']
    ? await eraseLearners(context, client, await listBenchLearners(client))
    : 0;
  const session = createSession({
    endpoint: { ...address, key },
    client,
    prefix: `${benchPrefix}${Date.now().toString(36)}${randomBytes(2).toString('hex')}-`,
    learners,
    seed: args.seed ?? 1,
    runLoad: createLoadRunner(context.closers),
  });
  const cleanUp = createCleanUp(context, session, args);
  const measured = await measure(context, session, args);
  const verified = args.verify
    ? await verifyAnswers(session, args['analyst-url'], (read) =>
        context.showProgress(`verifying: ${read} learners`),
      )
    : null;
  const cleaned = await cleanUp();
  const difference = verified && findDifference(verified);
  const results: DeploymentResults = {
    ...{ format: 1, started_at: startedAt, url: address.baseUrl, run: session.prefix },
    settings: describeSettings(args),
    ...measured,
    warnings: [...warnings, ...measured.warnings],
    verified,
    cleaned_learners: cleaned === null ? null : cleaned + cleanedBefore,
    failures: [...listMissed(measured, args), ...(difference === null ? [] : [difference])],
  };
  report(context, results, args);
}

/** @returns warnings @throws StartError if the key or the tenant does not allow the run */
async function checkTarget(client: Skilltrace, args: DeploymentArguments): Promise<string[]> {
  const own = await client.ownKey();
  const warning = checkKey(own, { needsErasure: args['clean-up'], rate: args.rate });
  if (!args['yes-this-tenant']) await requireBenchTenant(client, own.tenant);
  return warning === null ? [] : [warning];
}

async function eraseLearners(
  { showProgress }: CommandContext,
  client: Skilltrace,
  userIds: readonly string[],
): Promise<number> {
  const started = await startErasures(client, userIds, (erased) =>
    showProgress(`erasing learners: ${erased} of ${userIds.length} requested`),
  );
  await waitUntilErased(client, started, (left) => showProgress(`erasing learners: ${left} left`));
  return started.size;
}

/** A signal requests the erasures; the deployment finishes them. */
function createCleanUp(
  context: CommandContext,
  session: Session,
  args: DeploymentArguments,
): () => Promise<number | null> {
  if (!args['clean-up']) return async () => null;
  let isDone = false;
  context.closers.add('learners of the load test', async () => {
    if (!isDone) await startErasures(session.client, listUsedLearners(session), () => undefined);
  });
  return async () => {
    const erased = await eraseLearners(context, session.client, listUsedLearners(session));
    isDone = true;
    return erased;
  };
}

type Measured = Pick<DeploymentResults, 'operations' | 'capacity' | 'capacity_steps' | 'warnings'>;

async function measure(
  context: CommandContext,
  session: Session,
  args: DeploymentArguments,
): Promise<Measured> {
  context.showProgress('creating learners');
  await session.createLearners();
  const runner = createScenarioRunner(context, session, args);
  const [first] = args.scenarios;
  if (args['find-capacity'] && first !== undefined) return searchCapacity(runner, first, args);
  const operations: Record<string, OperationSummary> = {};
  const warnings: string[] = [];
  for (const name of args.scenarios) {
    await runner.warmUp(name);
    const load = await runner.run(name, args.rate, args.duration ?? defaults.seconds, graceMs);
    Object.assign(operations, summarizeScenario(name, load));
    warnings.push(...runner.findSaturation(name, load));
  }
  return { operations, capacity: null, capacity_steps: [], warnings };
}

type ScenarioRunner = ReturnType<typeof createScenarioRunner>;

function createScenarioRunner({ showProgress }: CommandContext, session: Session, args: DeploymentArguments) {
  let generators = args.generators ?? 1;
  const run = (
    name: ScenarioName,
    rate: number | null,
    seconds: number,
    graceMs: number,
  ): Promise<LoadResult> =>
    session.load({
      traffic: createTraffic(name, args),
      connections: args.connections ?? scenarioConnections(name),
      ...(name === 'burst' ? { isBurst: true, rate: rate ?? defaults.burst } : { rate }),
      ...{ seconds, graceMs, generators },
      onProgress: (text) =>
        showProgress(`${name}${rate === null ? '' : ` at ${Math.round(rate)}/s`}: ${text}`),
    });
  /** Also finds the number of generators that the load needs. */
  const warmUp = async (name: ScenarioName): Promise<void> => {
    const seconds = args['warm-up'] ?? defaults.warmUp;
    if (seconds === 0) return;
    const { utilization } = await run(name, args.rate, seconds, graceMs);
    if (utilization > saturated && args.generators === null)
      generators = Math.min(2 * generators, availableParallelism());
  };
  const findSaturation = (name: ScenarioName, { utilization }: LoadResult): string[] =>
    utilization <= saturated
      ? []
      : [
          `${name}: the load generator was busy ${Math.round(100 * utilization)} % of the time and may limit the result; use --generators ${2 * generators}, or more machines`,
        ];
  return { run, warmUp, findSaturation };
}

/** Requests of these scenarios are a hundred times as heavy. */
const scenarioConnections = (name: ScenarioName): number =>
  name === 'batch' || name === 'class' ? defaults.heavyConnections : defaults.connections;

const scenarioTraffic: Readonly<Record<ScenarioName, (batch: number) => Partial<Traffic>>> = {
  single: () => ({}),
  batch: (batch) => ({ batch }),
  mixed: () => ({ kind: 'mixed' }),
  class: () => ({ kind: 'class' }),
  burst: () => ({}),
};

const createTraffic = (name: ScenarioName, args: DeploymentArguments): Traffic => ({
  ...usualTraffic,
  order: args.distribution ?? 'uniform',
  learners: args.learners,
  skills: args.skills ?? defaults.skills,
  items: args.items ?? 0,
  eventIds: !args['no-event-ids'],
  ...scenarioTraffic[name](args.batch ?? defaults.batch),
});

async function searchCapacity(
  runner: ScenarioRunner,
  name: ScenarioName,
  args: DeploymentArguments,
): Promise<Measured> {
  const slo = readObjectives(args);
  const steps: CapacityStep[] = [];
  const measureStep = async (rate: number) => {
    const load = await runner.run(name, rate, args.duration ?? defaults.stepSeconds, stepGraceMs);
    const summary = summarizeScenario(name, load)[name] as OperationSummary;
    const isMet = isRateReached(rate, summary) && findMissed(slo, computeFigures(summary)).length === 0;
    steps.push({ offered: rate, summary, isMet });
    await sleep(stepPauseMs);
    return { rate, isMet, load, summary };
  };
  await runner.warmUp(name);
  const confirmed = await findCapacity(measureStep, args.rate ?? defaults.firstRate);
  const last = confirmed?.at(-1);
  if (!confirmed || !last) return { operations: {}, capacity: null, capacity_steps: steps, warnings: [] };
  return {
    operations: summarizeScenario(name, last.load),
    capacity: { rate: last.rate, p99_ms: Math.max(...confirmed.map(({ summary }) => summary.p99_ms)) },
    capacity_steps: steps,
    warnings: runner.findSaturation(name, last.load),
  };
}

/** Otherwise requests wait longer the longer the load lasts. */
const isRateReached = (offered: number, { rate }: OperationSummary): boolean => rate >= 0.95 * offered;

/** Without secrets. */
const describeSettings = (args: DeploymentArguments): DeploymentResults['settings'] => ({
  scenarios: args.scenarios.join(),
  rate: args.rate ?? (args['find-capacity'] ? 'searched' : 'closed loop'),
  connections: args.connections ?? 'default',
  seconds: args.duration ?? (args['find-capacity'] ? defaults.stepSeconds : defaults.seconds),
  learners: args.learners,
  skills: args.skills ?? defaults.skills,
  items: args.items ?? 0,
  distribution: args.distribution ?? 'uniform',
  batch: args.batch ?? defaults.batch,
  event_ids: !args['no-event-ids'],
  seed: args.seed ?? 1,
  ...(args['find-capacity'] && { slo: listTexts(readObjectives(args)) }),
  ...(args.assert && { assert: listTexts(args.assert) }),
});

const readObjectives = ({ slo }: DeploymentArguments): readonly Objective[] =>
  slo ?? parseObjectives(defaults.slo, '--slo');

const listTexts = (objectives: readonly Objective[]): string => objectives.map(({ text }) => text).join();

/** A search without a result misses its objective. */
function listMissed({ operations, capacity }: Measured, args: DeploymentArguments): string[] {
  if (args['find-capacity'] && capacity === null) return ['no rate meets the objectives'];
  const asserted = args.assert ?? [];
  return [
    ...findMissed(asserted, capacity === null ? {} : { capacity: capacity.rate }),
    ...args.scenarios.flatMap((name) =>
      findMissed(asserted, computeFigures(operations[name] as OperationSummary)).map(
        (text) => `${name}: ${text}`,
      ),
    ),
  ];
}

function report(
  context: CommandContext,
  results: DeploymentResults,
  { json, report: page }: DeploymentArguments,
): void {
  if (json !== null) writeFileSync(json, `${JSON.stringify(results, null, 1)}\n`);
  if (page !== null) writeDeploymentReport(results, page);
  context.print(formatDeployment(results));
  if (results.failures.length === 0) return;
  context.stderr.write(`skilltrace: ${results.failures.join('; ')}\n`);
  context.endWith(1);
}
