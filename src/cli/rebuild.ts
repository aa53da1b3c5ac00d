/** Restores Redis from ClickHouse, or compares the two. */
import { createRebuildPool } from '../compute/rebuild-pool.js';
import { StartError } from '../lifecycle.js';
import {
  RebuildError,
  type RebuildParts,
  type RebuildProgress,
  rebuild,
} from '../services/rebuild/rebuild.js';
import { retireOlder } from '../services/rebuild/replace.js';
import { verify } from '../services/rebuild/verify.js';
import { idWindowSeconds } from '../store/learners/id-ledger.js';
import { maxItems } from '../store/models/item-store.js';
import { createRebuildStore, rebuildLockKey } from '../store/rebuild/rebuild-store.js';
import { defaultPartitions, otherVersion, unusableReason } from '../store/redis/deployment.js';
import { createRebuildSource } from '../warehouse/reads/rebuild-source.js';
import { type CommandContext, commandOf, createProgress } from './command.js';
import { type ProcessLock, takeProcessLock } from './process-lock.js';
import { type RebuildArguments, readRebuildArguments, rebuildHelp } from './rebuild-options.js';
import { progressText, rebuildJson, rebuildText, verifyJson, verifyText } from './rebuild-report.js';
import { type Servers, withServers } from './servers.js';

export const main = commandOf({
  name: 'rebuild',
  help: rebuildHelp,
  read: readRebuildArguments,
  work: run,
});

async function run(context: CommandContext, args: RebuildArguments): Promise<void> {
  if (args.verify) return withServers(context, (servers) => compare(context, servers, args.json));
  let lock: ProcessLock;
  await withServers(
    context,
    (servers) => restore(context, servers, lock, args.json),
    async (servers) => {
      const message = 'Redis is being rebuilt by another process right now';
      lock = await takeProcessLock(servers.redis, rebuildLockKey, message, context);
      await replaceOlder(context, servers, lock);
    },
  ).catch((error: unknown) => {
    throw error instanceof RebuildError ? new StartError(error.message, { cause: error }) : error;
  });
}

async function replaceOlder(
  context: CommandContext,
  servers: Servers,
  { check }: ProcessLock,
): Promise<void> {
  const other = await otherVersion(servers.redis);
  if (other?.state === 'newer') throw new StartError(unusableReason(other));
  if (other !== null) await retireOlder(partsOf(context, servers), other, check);
}

async function compare(context: CommandContext, servers: Servers, json: boolean): Promise<void> {
  const { show, onProgress } = progressOf(context);
  const result = await verify(partsOf(context, servers), { defaultPartitions, onProgress });
  show('');
  context.stdout.write(`${json ? verifyJson(result) : verifyText(result)}\n`);
  if (result.differingCount > 0) context.endWith(1);
  else if (result.undecided > 0) context.endWith(2);
}

async function restore(
  context: CommandContext,
  servers: Servers,
  { check }: ProcessLock,
  json: boolean,
): Promise<void> {
  const { show, onProgress } = progressOf(context);
  const options = { idWindowSeconds, defaultPartitions, check, onProgress };
  const result = await rebuild(partsOf(context, servers), options);
  show('');
  context.stdout.write(`${json ? rebuildJson(result) : rebuildText(result)}\n`);
}

function progressOf(context: CommandContext) {
  const { show } = createProgress(context);
  return { show, onProgress: (progress: RebuildProgress): void => show(progressText(progress)) };
}

const partsOf = ({ config }: CommandContext, { endpoints, clickhouse, redis }: Servers): RebuildParts => ({
  source: createRebuildSource(clickhouse, endpoints.clickhouseUrl, maxItems),
  store: createRebuildStore(redis),
  openThreads: () => createRebuildPool(endpoints.redisUrl, config.redisWaitReplicas),
});
