/** Restores Redis from ClickHouse, or compares the two. */
import { createRebuildPool } from '../compute/rebuild-pool.js';
import { StartError } from '../lifecycle.js';
import {
  RebuildError,
  type RebuildParts,
  type RebuildProgress,
  rebuild,
} from '../services/rebuild/rebuild.js';
import { verify } from '../services/rebuild/verify.js';
import { defaultPartitions } from '../store/deployment.js';
import { idWindowSeconds } from '../store/id-window.js';
import { maxItems } from '../store/item-store.js';
import { releaseLock, takeLock } from '../store/lock.js';
import { createRebuildStore, rebuildLockKey } from '../store/rebuild-store.js';
import { createRebuildSource } from '../warehouse/rebuild-source.js';
import { type CommandContext, commandOf } from './command.js';
import { createProgress } from './import-report.js';
import { type ProcessLock, takeProcessLock } from './process-lock.js';
import { type RebuildArguments, readRebuildArguments, rebuildHelp } from './rebuild-options.js';
import { progressText, rebuildJson, rebuildText, verifyJson, verifyText } from './rebuild-report.js';
import { type Servers, withServers } from './servers.js';

export const main = commandOf({
  name: 'rebuild',
  help: rebuildHelp,
  read: readRebuildArguments,
  work: carryOut,
});

function carryOut(context: CommandContext, { verify: isVerify, json }: RebuildArguments): Promise<void> {
  return withServers(context, async (servers) => {
    if (isVerify) await compare(context, servers, json);
    else {
      const lock = await takeRebuildLock(context, servers);
      const result = await restore(context, servers, lock);
      context.stdout.write(`${json ? rebuildJson(result) : rebuildText(result)}\n`);
    }
  });
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

async function restore(context: CommandContext, servers: Servers, lock: ProcessLock) {
  const { config } = context;
  const progress = createProgress(context);
  try {
    const result = await rebuild(partsOf(servers, config.redisWaitReplicas), {
      idWindowSeconds,
      maxIds: config.idempotencyMaxIds,
      defaultPartitions,
      now: Date.now,
      check: lock.check,
      onProgress: (at) => progress.show(progressText(at)),
    });
    progress.show('');
    return result;
  } catch (error) {
    throw error instanceof RebuildError ? new StartError(error.message, { cause: error }) : error;
  }
}

const partsOf = ({ endpoints, clickhouse, redis }: Servers, waitReplicas: number): RebuildParts => ({
  source: createRebuildSource(clickhouse, endpoints.clickhouseUrl, maxItems),
  store: createRebuildStore(redis),
  openThreads: () => createRebuildPool(endpoints.redisUrl, waitReplicas),
});
