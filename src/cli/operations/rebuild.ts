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
    about: 'Restores Redis from ClickHouse after Redis has lost its data, or compares both.',
    options: {
      verify:
        flag(`write nothing; replay the stored and the waiting answers, compare each learner with Redis, and print
the differences`),
      json: jsonFlag,
    },
    examples: ['npm run rebuild', 'npm run rebuild -- --verify'],
    notes: `The command replays the stored answers of all learners and restores their states, recent event ids, goals, catalogues,
models and API keys. In a Redis Cluster it restores only the partitions that lost their data. If nothing is missing,
it changes nothing. If a run is stopped, the next run resumes it.

The service can keep running: it responds with 503 until the rebuild is complete, and then resumes within seconds.

Answers that were only in the outbox of the lost Redis are not in ClickHouse and cannot be restored. Clients that send
them again with their event_id lose no answer.

After an upgrade that changes the format of learners, stop every service and run the command to convert all learners.
It stops with an error while Redis contains data that ClickHouse does not have.

Exit codes of --verify:
  0  no differences
  1  differences
  2  no differences, but some learners could not be compared

It connects to REDIS_URL and CLICKHOUSE_URL or to the service running on DATA_DIR, or starts the embedded servers itself.`,
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
  const message = 'Another process is rebuilding Redis. Wait until it ends';
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
  if (result === null) context.print(json ? formatJsonLine({ restored: false }) : 'Nothing to restore');
  else context.print((json ? formatJsonLine : formatSummary)(summarize(result)));
}

const createRebuildParts = (
  { config }: CommandContext,
  { endpoints, clickhouse, redis }: Servers,
): RebuildDependencies => ({
  source: createRebuildSource(clickhouse, endpoints.clickhouseUrl, maxItems),
  store: createRebuildStore(redis),
  openThreads: (timeZones) => createRebuildPool(endpoints.redisUrl, config.redisWaitReplicas, timeZones),
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
  const gaps = `${formatNumber(brokenCount)} learners have missing or duplicate rows (${broken.join(', ')}); they were restored from the rows that exist`;
  const keys = `${formatNumber(unreadableKeys)} API keys were encrypted with a different ClickHouse password and cannot be restored; create new keys`;
  return [...(brokenCount > 0 ? [gaps] : []), ...(unreadableKeys > 0 ? [keys] : [])];
}

function formatSummary(summary: ReturnType<typeof summarize>): string {
  const { learners, answers, resumedAfter, learnersPerSecond, answersPerSecond, notes } = summary;
  return [
    `${formatNumber(learners)} learners with ${formatNumber(answers)} answers restored in ${summary.seconds.toFixed(1)} s`,
    `  replay: ${formatNumber(learnersPerSecond)} learners/s, ${formatNumber(answersPerSecond)} answers/s`,
    `  ${summary.partitions} partitions restored`,
    ...(resumedAfter > 0
      ? [`  ${formatNumber(resumedAfter)} of these answers were restored by an earlier run`]
      : []),
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
  if (waiting > 0) lines.push(`  ${formatNumber(waiting)} learners have answers that are only in Redis`);
  if (undecided > 0)
    lines.push(
      `  ${formatNumber(undecided)} learners could not be compared: Redis has answers without a row in ClickHouse. If these learners sent answers during the run, run the command again; otherwise run npm run audit`,
    );
  return lines.join('\n');
}

const serializeVerification = ({ differing, differingCount, ...result }: VerifyResult): string =>
  formatJsonLine({ ...result, differing: differingCount, differences: differing });
