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
import { idWindowSeconds } from '../store/learners/event-ids.js';
import { maxItems } from '../store/models/item-store.js';
import { createRebuildStore, rebuildLockKey } from '../store/rebuild/rebuild-store.js';
import { defaultPartitions, otherVersion, unusableReason } from '../store/redis/deployment.js';
import { createRebuildSource } from '../warehouse/reads/rebuild-source.js';
import { parseArguments, usageOf } from './arguments.js';
import { type CommandContext, commandOf, createProgress } from './command.js';
import { type ProcessLock, takeProcessLock } from './process-lock.js';
import { progressText, rebuildJson, rebuildText, verifyJson, verifyText } from './rebuild-report.js';
import { type Servers, withServers } from './servers.js';

interface RebuildArguments {
  readonly verify: boolean;
  readonly json: boolean;
}

const help = `Usage: npm run rebuild [-- options]

Restores Redis from ClickHouse after it came back empty: every learner byte for byte by replaying the answers,
event ids that are still remembered with their first answers, goals, catalogues, models, API keys. A Redis
Cluster that lost a node gets back what was on it. Where nothing is missing, nothing is done.

After an upgrade to a version that keeps learners otherwise, with every service stopped, it restores all of them as this
version keeps them. It refuses that while anything waits in Redis that ClickHouse does not have.

The service may run meanwhile: it answers 503 until all is there, and goes on by itself within seconds. A run that
was stopped is taken up by the next one where it stood.

Answers that were still in the outbox, in Redis alone, when Redis was lost are not in ClickHouse and cannot be
restored; callers who got no 200 or who send them again with their event_id lose nothing.

Options:
  --verify   write nothing: compare every learner in Redis with what the answers in ClickHouse and those that still
             wait in Redis give, and print the differences; exit code 1 where there are any, 2 where learners could
             not be compared
  --json     result as one line of JSON
  --help     this text

It uses the servers of the service that runs on DATA_DIR (or REDIS_URL and CLICKHOUSE_URL), or starts its own.
`;

const usage = usageOf('npm run rebuild [-- options]');

/** @returns the arguments, or null if help was asked for. @throws StartError */
function readArguments(argv: readonly string[]): RebuildArguments | null {
  const { values, positionals } = parseArguments(usage, argv, {
    verify: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h' },
  });
  if (values.help) return null;
  if (positionals.length > 0) throw usage('there are no further arguments');
  return { verify: values.verify, json: values.json };
}

export const main = commandOf({
  name: 'rebuild',
  help,
  read: readArguments,
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
