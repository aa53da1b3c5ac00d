/** `npm run bench -- --url`: loads a running deployment. */
import { randomBytes } from 'node:crypto';
import { appendFileSync, writeFileSync } from 'node:fs';
import { type CommandContext, defineCommand } from '../../src/cli/support/command.js';
import { Skilltrace, SkilltraceError } from '../../src/client/index.js';
import { describeConnectionError } from '../../src/connection-problem.js';
import { StartError } from '../../src/lifecycle.js';
import { createLoadRunner } from '../load/load-runner.js';
import { formatFigure } from '../report/section.js';
import { type Measured, measureScenarios } from './measure.js';
import { findMissed } from './objectives.js';
import { type DeploymentArguments, deploymentArguments, type LoadSettings } from './options.js';
import { describeVerification, formatDeployment, writeDeploymentReport } from './report.js';
import { computeFigures, type DeploymentResults, type OperationSummary } from './results.js';
import { benchPrefix, createSession, listUsedLearners, type Session } from './session.js';
import { checkKey, listBenchLearners, requireBenchTenant, startErasures, waitUntilErased } from './tenant.js';
import { checkAnalyst, findDifference, verifyAnswers } from './verify.js';

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
  const { address, settings, cleanUp, verify, analystUrl } = args;
  const started_at = new Date().toISOString();
  const { session, warnings, cleanedBefore } = await openSession(context, args);
  const cleanSession = cleanUp ? createCleanUp(context, session) : null;
  const measured = await measureScenarios(session, args, context.showProgress);
  const failures = listMissed(measured, settings);
  let results: DeploymentResults = {
    ...{ format: 1, started_at, url: address.baseUrl, run: session.prefix, settings },
    ...{ ...measured, warnings: [...warnings, ...measured.warnings] },
    ...{ verified: null, cleaned_learners: null, failures },
  };
  const publish = (change: Partial<DeploymentResults>, text: string): void => {
    results = { ...results, ...change };
    context.print(text);
    writeResults(args, results);
  };
  // Verification and erasure may fail, take minutes, or be interrupted.
  publish({}, formatDeployment(results));
  if (verify) {
    const verified = await verifyAnswers(session, analystUrl, context.showProgress);
    const difference = findDifference(verified);
    const all = difference === null ? failures : [...failures, difference];
    publish({ verified, failures: all }, describeVerification(verified));
  }
  if (cleanSession !== null) {
    const cleaned_learners = cleanedBefore + (await cleanSession());
    publish({ cleaned_learners }, `Erased ${formatFigure(cleaned_learners)} learners.`);
  }
  if (results.failures.length === 0) return;
  context.stderr.write(`skilltrace: ${results.failures.join('; ')}\n`);
  context.endWith(1);
}

/** Checks everything that could make the results useless. @throws StartError */
async function openSession(context: CommandContext, args: DeploymentArguments) {
  const { address, settings, cleanUp, analystUrl } = args;
  const key = args.key ?? context.env.SKILLTRACE_KEY;
  if (!key) throw new StartError('Pass --key KEY, or set the variable SKILLTRACE_KEY');
  for (const file of [args.json, args.report]) if (file !== null) requireWritable(file);
  if (analystUrl !== null) await checkAnalyst(analystUrl);
  const client = new Skilltrace({ baseUrl: address.baseUrl, apiKey: key });
  const warnings = await checkTarget(client, args);
  const cleanedBefore = cleanUp ? await eraseLearners(context, client, await listBenchLearners(client)) : 0;
  const session = createSession({
    ...{ endpoint: { ...address, key }, client, learners: settings.learners, seed: settings.seed },
    prefix: `${benchPrefix}${Date.now().toString(36)}${randomBytes(2).toString('hex')}-`,
    runLoad: createLoadRunner(context.closers),
  });
  return { session, warnings, cleanedBefore };
}

/** @returns warnings @throws StartError if the key or the tenant does not allow the run */
async function checkTarget(client: Skilltrace, args: DeploymentArguments): Promise<string[]> {
  const own = await client.ownKey();
  if (!Array.isArray(own?.scopes))
    throw new StartError(`${args.address.baseUrl} is not a Skilltrace service; check --url`);
  const { rate, slo } = args.settings;
  const warning = checkKey(own, { needsErasure: args.cleanUp, rate: slo === null ? rate : Infinity });
  if (!args.isAnyTenant) await requireBenchTenant(client, own.tenant);
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

/** After a signal or a failure, only requests the erasures: the deployment finishes them. */
function createCleanUp(context: CommandContext, session: Session): () => Promise<number> {
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

/** A search without a result, and a scenario without a success, also fail. */
function listMissed({ operations, capacity }: Measured, settings: LoadSettings): string[] {
  const { scenarios, slo, assert } = settings;
  if (slo !== null && capacity === null) return ['no rate meets the objectives'];
  return [
    ...findMissed(assert, capacity === null ? {} : { capacity: capacity.rate }),
    ...scenarios.flatMap((name) => {
      const summary = operations[name] as OperationSummary;
      if (summary.errors === summary.requests) return [`${name}: all requests failed`];
      return findMissed(assert, computeFigures(summary)).map((text) => `${name}: ${text}`);
    }),
  ];
}

function writeResults({ json, report }: DeploymentArguments, results: DeploymentResults): void {
  if (json !== null) writeFileSync(json, `${JSON.stringify(results, null, 1)}\n`);
  if (report !== null) writeDeploymentReport(results, report);
}

/** @throws StartError */
function requireWritable(file: string): void {
  try {
    appendFileSync(file, '');
  } catch (cause) {
    throw new StartError(`Cannot write ${file}: ${(cause as Error).message}`, { cause });
  }
}
