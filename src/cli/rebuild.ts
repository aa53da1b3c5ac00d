/** Restores Redis from ClickHouse, or compares the two. */
import { createRebuildPool } from '../compute/rebuild-pool.js';
import { StartError } from '../lifecycle.js';
import {
  RebuildError,
  type RebuildParts,
  type RebuildProgress,
  type RebuildResult,
  rebuild,
} from '../services/rebuild/rebuild.js';
import { decideToReplace, moveLearners } from '../services/rebuild/replace.js';
import { verify } from '../services/rebuild/verify.js';
import { idWindowSeconds } from '../store/learners/id-ledger.js';
import { maxItems } from '../store/models/item-store.js';
import { createRebuildStore, rebuildLockKey } from '../store/rebuild/rebuild-store.js';
import { createReplaceStore } from '../store/rebuild/replace-store.js';
import {
  changesFigures,
  defaultPartitions,
  otherVersion,
  unusableReason,
} from '../store/redis/deployment.js';
import { releaseLock, takeLock } from '../store/redis/lock.js';
import { createRebuildSource } from '../warehouse/reads/rebuild-source.js';
import { type CommandContext, commandOf } from './command.js';
import { createProgress } from './import-report.js';
import { type ProcessLock, takeProcessLock } from './process-lock.js';
import { type RebuildArguments, readRebuildArguments, rebuildHelp } from './rebuild-options.js';
import {
  keptText,
  progressText,
  type Replaced,
  rebuildJson,
  rebuildText,
  replacedOf,
  verifyJson,
  verifyText,
} from './rebuild-report.js';
import { type Servers, withServers } from './servers.js';

export const main = commandOf({
  name: 'rebuild',
  help: rebuildHelp,
  read: readRebuildArguments,
  work: carryOut,
});

function carryOut(context: CommandContext, args: RebuildArguments): Promise<void> {
  const { verify, replace, json } = args;
  if (verify) return withServers(context, (servers) => compare(context, servers, json));
  let lock: ProcessLock;
  return withServers(
    context,
    (servers) => forUser(restoreAll(context, servers, lock, args)),
    async (servers) => {
      lock = await takeRebuildLock(context, servers);
      await forUser(stopOlder(context, servers, lock, replace));
    },
  );
}

const forUser = <Value>(work: Promise<Value>): Promise<Value> =>
  work.catch((error: unknown) => {
    throw error instanceof RebuildError ? new StartError(error.message, { cause: error }) : error;
  });

async function restoreAll(
  context: CommandContext,
  servers: Servers,
  lock: ProcessLock,
  { replace, json }: RebuildArguments,
): Promise<void> {
  const moved = await moveOlder(context, servers, lock);
  const replaced = replace ? moved : (moved ?? undefined);
  const result = await restore(context, servers, lock);
  context.stdout.write(`${json ? rebuildJson(result, replaced) : rebuildText(result, replaced)}\n`);
}

async function stopOlder(
  { config }: CommandContext,
  servers: Servers,
  { check }: ProcessLock,
  replace: boolean,
): Promise<void> {
  const other = await otherVersion(servers.redis);
  if (other === null) return;
  // Another layout changes no figure: any rebuild replaces it.
  if (other.state === 'newer' || (changesFigures(other) && !replace))
    throw new StartError(unusableReason(other));
  const parts = partsOf(servers, config.redisWaitReplicas);
  await decideToReplace({ ...parts, replacing: createReplaceStore(servers.redis, other) }, check);
}

/** @returns null where all learners are kept as today */
async function moveOlder(
  context: CommandContext,
  { redis }: Servers,
  { check }: ProcessLock,
): Promise<Replaced | null> {
  const other = await otherVersion(redis);
  if (other === null) return null;
  const progress = createProgress(context);
  const keys = await moveLearners(createReplaceStore(redis, other), (moved) => {
    check();
    progress.show(`moving learners of ${keptText(other)} aside, ${moved} keys`);
  });
  return replacedOf(other, keys);
}

async function compare(context: CommandContext, servers: Servers, json: boolean): Promise<void> {
  const { config, endWith } = context;
  const progress = createProgress(context);
  const onProgress = (at: RebuildProgress): void => progress.show(progressText(at));
  const result = await verify(partsOf(servers, config.redisWaitReplicas), { defaultPartitions, onProgress });
  progress.show('');
  context.stdout.write(`${json ? verifyJson(result) : verifyText(result)}\n`);
  if (result.differingCount > 0) endWith(1);
  else if (result.undecided > 0) endWith(2);
}

const takeRebuildLock = ({ logger, closers }: CommandContext, { redis }: Servers): Promise<ProcessLock> =>
  takeProcessLock(
    {
      take: (holder) => takeLock(redis, rebuildLockKey, holder),
      release: (holder) => releaseLock(redis, rebuildLockKey, holder),
    },
    'Redis is being rebuilt by another process right now',
    logger,
    closers,
  );

async function restore(
  context: CommandContext,
  servers: Servers,
  lock: ProcessLock,
): Promise<RebuildResult | null> {
  const { config } = context;
  const progress = createProgress(context);
  const result = await rebuild(partsOf(servers, config.redisWaitReplicas), {
    idWindowSeconds,
    defaultPartitions,
    now: Date.now,
    check: lock.check,
    onProgress: (at) => progress.show(progressText(at)),
  });
  progress.show('');
  return result;
}

const partsOf = ({ endpoints, clickhouse, redis }: Servers, waitReplicas: number): RebuildParts => ({
  source: createRebuildSource(clickhouse, endpoints.clickhouseUrl, maxItems),
  store: createRebuildStore(redis),
  openThreads: () => createRebuildPool(endpoints.redisUrl, waitReplicas),
});
