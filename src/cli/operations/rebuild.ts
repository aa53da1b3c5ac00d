import { rejectOtherVersion } from '../../app/startup/deployment-watch.js';
import { createRebuildPool } from '../../compute/job-pools.js';
import { formatJsonLine, formatNumber } from '../../lab/report/format.js';
import { StartError } from '../../lifecycle.js';
import { type RebuildResult, rebuild, retireOlderVersion } from '../../services/rebuild/rebuild.js';
import {
  type RebuildDependencies,
  type RebuildOptions,
  type VerifyResult,
  verifyLearners,
} from '../../services/rebuild/replay-learners.js';
import { maxItems } from '../../store/models/item-store.js';
import { createRebuildStore, rebuildLockKey } from '../../store/rebuild/rebuild-store.js';
import { findVersionMismatch, formatUnusableReason } from '../../store/redis/server/deployment.js';
import { createRebuildSource } from '../../warehouse/reads/rebuild-source.js';
import { defineArguments, flag, jsonFlag, rejectOperands } from '../support/arguments.js';
import { type CommandContext, defineCommand } from '../support/command.js';
import { acquireProcessLock, type Servers, updateSchema, withServers } from '../support/servers.js';

export const main = defineCommand({
  name: 'rebuild',
  ...defineArguments({
    usage: 'npm run rebuild [-- options]',
    about: `Restores Redis from ClickHouse after it came back empty: every learner byte for byte by replaying the answers,
event ids that are still remembered with their first answers, goals, catalogues, models, API keys. A Redis
Cluster that lost a node gets back what was on it. Where nothing is missing, nothing is done.

After an upgrade to a version that keeps learners otherwise, with every service stopped, it restores all of them as this
version keeps them. It refuses that while anything waits in Redis that ClickHouse does not have.

The service may run meanwhile: it answers 503 until all is there, and goes on by itself within seconds. A run that
was stopped is taken up by the next one where it stood.

Answers that were still in the outbox, in Redis alone, when Redis was lost are not in ClickHouse and cannot be
restored; callers who got no 200 or who send them again with their event_id lose nothing.`,
    options: {
      verify:
        flag(`write nothing: compare every learner in Redis with what the answers in ClickHouse and those that still
wait in Redis give, and print the differences; exit code 1 where there are any, 2 where learners could
not be compared`),
      json: jsonFlag,
    },
    notes:
      'It uses the servers of the service that runs on DATA_DIR (or REDIS_URL and CLICKHOUSE_URL), or starts its own.',
    read: rejectOperands,
  }),
  run: (context, args) =>
    withServers(context, (servers) => (args.verify ? runVerify : runRestore)(context, servers, args.json)),
});

async function runVerify(context: CommandContext, servers: Servers, json: boolean): Promise<void> {
  await rejectOtherVersion(servers.redis);
  await updateSchema(servers);
  const result = await verifyLearners(createRebuildParts(context, servers), {
    onProgress: createProgressReporter(context),
  });
  context.print(json ? serializeVerification(result) : formatVerification(result));
  if (result.differingCount > 0) context.endWith(1);
  else if (result.undecided > 0) context.endWith(2);
}

async function runRestore(context: CommandContext, servers: Servers, json: boolean): Promise<void> {
  const message = 'Redis is being rebuilt by another process right now';
  const { check: ensureMayContinue } = await acquireProcessLock(
    servers.redis,
    rebuildLockKey,
    message,
    context,
  );
  const parts = createRebuildParts(context, servers);
  const other = await findVersionMismatch(servers.redis);
  if (other?.state === 'newer') throw new StartError(formatUnusableReason(other));
  if (other !== null) await retireOlderVersion(parts, other, ensureMayContinue);
  await updateSchema(servers);
  const result = await rebuild(parts, { ensureMayContinue, onProgress: createProgressReporter(context) });
  if (result === null) context.print(json ? formatJsonLine({ restored: false }) : 'nothing to restore');
  else context.print((json ? formatJsonLine : formatSummary)(summarize(result)));
}

const createRebuildParts = (
  { config }: CommandContext,
  { endpoints, clickhouse, redis }: Servers,
): RebuildDependencies => ({
  source: createRebuildSource(clickhouse, endpoints.clickhouseUrl, maxItems),
  store: createRebuildStore(redis),
  openThreads: () => createRebuildPool(endpoints.redisUrl, config.redisWaitReplicas),
});

const createProgressReporter =
  ({ showProgress }: CommandContext): RebuildOptions['onProgress'] =>
  ({ step, answers, total }) => {
    const share = Math.floor((100 * answers) / Math.max(1, total));
    const of = `${share} %, ${formatNumber(answers)} of ${formatNumber(total)} answers`;
    showProgress(total === 0 ? step : `${step}, ${of}`);
  };

/** Rates cover only the answers replayed by this run. */
function summarize(result: RebuildResult) {
  const { partitions, learners, answers, resumedAfter, seconds, replaySeconds } = result;
  const perSecond = (answers === 0 ? 0 : (answers - resumedAfter) / answers) / Math.max(replaySeconds, 0.001);
  return {
    restored: true,
    ...{ partitions, learners, answers, resumedAfter, seconds },
    learnersPerSecond: Math.round(perSecond * learners),
    answersPerSecond: Math.round(perSecond * answers),
    brokenLearners: result.brokenCount,
    notes: buildNotes(result),
  };
}

function buildNotes({ brokenCount, broken, unreadableKeys }: RebuildResult): string[] {
  const gaps = `rows of ${formatNumber(brokenCount)} learners have gaps or doubles (${broken.join(', ')}): they are as their rows say`;
  const keys = `${formatNumber(unreadableKeys)} API keys were recorded under another password of ClickHouse: create them again`;
  return [...(brokenCount > 0 ? [gaps] : []), ...(unreadableKeys > 0 ? [keys] : [])];
}

function formatSummary(summary: ReturnType<typeof summarize>): string {
  const { learners, answers, resumedAfter, learnersPerSecond, answersPerSecond, notes } = summary;
  return [
    `${formatNumber(learners)} learners with ${formatNumber(answers)} answers restored in ${summary.seconds.toFixed(1)} s`,
    `  ${formatNumber(learnersPerSecond)} learners and ${formatNumber(answersPerSecond)} answers a second in the replay`,
    `  ${summary.partitions} partitions are in use again`,
    ...(resumedAfter > 0 ? [`  ${formatNumber(resumedAfter)} of the answers by an earlier run`] : []),
    ...notes.map((note) => `  Note: ${note}`),
  ].join('\n');
}

const maxShownDifferences = 20;

function formatVerification(result: VerifyResult): string {
  const { learners, answers, waiting, differing, differingCount, undecided, seconds } = result;
  const lines = [
    `${formatNumber(learners)} learners with ${formatNumber(answers)} stored answers compared in ${seconds.toFixed(1)} s`,
    differingCount === 0 ? '  no differences' : `  ${formatNumber(differingCount)} learners differ`,
    ...differing.slice(0, maxShownDifferences).map(({ learner, what }) => `    ${learner} ${what}`),
  ];
  if (waiting > 0) lines.push(`  ${formatNumber(waiting)} of them had answers that still wait in Redis`);
  if (undecided > 0)
    lines.push(
      `  ${formatNumber(undecided)} could not be compared, for Redis counts answers that no row is found of: they kept answering (compare again), or ClickHouse lacks rows (npm run audit)`,
    );
  return lines.join('\n');
}

const serializeVerification = ({ differing, differingCount, ...result }: VerifyResult): string =>
  formatJsonLine({ ...result, differing: differingCount, differences: differing });
