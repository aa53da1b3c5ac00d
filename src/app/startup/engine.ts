import { startCompute } from '../../compute/compute.js';
import { createLimiter } from '../../concurrency.js';
import type { Config } from '../../config.js';
import type { WorkerSettings } from '../../contracts/settings/worker-settings.js';
import type { Endpoints } from '../../embedded/data-dir.js';
import { unavailable } from '../../errors.js';
import type { Closers } from '../../lifecycle.js';
import type { Logger } from '../../logger.js';
import {
  type SkillWrite,
  type SkillWriteResult,
  writeSkills,
} from '../../store/catalogue/catalogue-store.js';
import { createRegisteredSkills } from '../../store/catalogue/registered-skills.js';
import { createServedModels } from '../../store/catalogue/served-models.js';
import { createGroupStore } from '../../store/groups/group-store.js';
import { createProfileStore } from '../../store/groups/profile-store.js';
import { createGoalStore } from '../../store/learners/goals.js';
import { createLearnerReads } from '../../store/learners/learner-reads.js';
import { createJournal } from '../../store/outbox/journal.js';
import { createOutbox } from '../../store/outbox/outbox.js';
import type { RedisClient } from '../../store/redis/connection/client.js';
import { partitionOf } from '../../store/redis/keys.js';
import { openRedis } from '../../store/redis/server/open-redis.js';
import { createEndpointStore } from '../../store/webhooks/endpoints.js';
import { connectWarehouse } from '../../warehouse/clickhouse/client.js';
import { rejectOtherVersion, watchDeployment } from './deployment-watch.js';

export type Engine = Awaited<ReturnType<typeof startEngine>>;

/** About 26 MB of Redis in total. */
const maxPendingForecasts = 10_000;

export type EngineSettings = Pick<Config, 'redisWaitReplicas' | 'outboxMaxRows' | 'lanes' | 'skillLimits'> &
  Pick<Config, 'tracing'> &
  Pick<WorkerSettings, 'itemCacheMs'>;

/** @throws StartError if Redis is unreachable or contains learners of another version */
export const connectStateStore = (
  { redisUrl }: Endpoints,
  { redisWaitReplicas }: Pick<EngineSettings, 'redisWaitReplicas'>,
  logger: Logger,
  closers: Closers,
): Promise<RedisClient> => openRedis(redisUrl, { logger, closers }, redisWaitReplicas, rejectOtherVersion);

export async function startEngine(
  redis: RedisClient,
  endpoints: Endpoints,
  settings: EngineSettings,
  logger: Logger,
  closers: Closers,
) {
  const { redisWaitReplicas: waitReplicas, outboxMaxRows, skillLimits, lanes, itemCacheMs } = settings;
  const spans =
    settings.tracing && (await import('../../opentelemetry.js')).openSpans(settings.tracing, logger, closers);
  const clickhouse = connectWarehouse(endpoints.clickhouseUrl, endpoints.clickhouseCluster);
  closers.add('ClickHouse connection', () => clickhouse.close());
  const watch = await watchDeployment(redis, clickhouse, logger, closers);
  const { partitions, blockReason } = watch;
  const maxOutboxRows = Math.floor(outboxMaxRows / partitions);
  const { redisUrl } = endpoints;
  const compute = startCompute(
    { redisUrl, waitReplicas, partitions, maxOutboxRows, maxPendingForecasts, skillLimits, itemCacheMs },
    (tenant, userId) => partitionOf(tenant, userId, partitions),
    lanes,
    logger,
  );
  closers.add('workers', () => compute.close());
  const { forecast, whatIf, nextItems } = compute;
  const servedModels = createServedModels(() => Promise.resolve(redis), logger);
  closers.add('model watch', () => servedModels.close());
  return {
    ...{ ...watch, endpoints, logger, closers, redis, clickhouse, spans },
    outbox: createOutbox(redis, partitions),
    journal: createJournal(redis, partitions),
    compute: { ...compute, ...rejectWhenBlocked(blockReason, { forecast, whatIf, nextItems }) },
    learners: rejectWhenBlocked(blockReason, createLearnerReads(redis, partitions)),
    skills: rejectWhenBlocked(blockReason, createRegisteredSkills(redis)),
    models: rejectWhenBlocked(blockReason, { current: servedModels.get }),
    goals: rejectWhenBlocked(blockReason, createGoalStore(redis, partitions)),
    groups: rejectWhenBlocked(blockReason, createGroupStore(redis)),
    profiles: rejectWhenBlocked(blockReason, createProfileStore(redis, partitions)),
    webhooks: rejectWhenBlocked(blockReason, createEndpointStore(redis)),
    catalogue: createCatalogueWriter(redis, skillLimits.perTenant, blockReason),
  };
}

/** One write per tenant at a time, because each write first checks the tenant's skill limit. */
function createCatalogueWriter(redis: RedisClient, maxSkills: number, blockReason: () => string | null) {
  const limit = createLimiter({
    maxRunning: 64,
    maxRunningOfTenant: 1,
    maxQueuedOfTenant: 1000,
    maxQueueWaitMs: 5000,
    rejectionMessage: 'Too many skill changes are in progress; retry later.',
  });
  const { writeSkill } = rejectWhenBlocked(blockReason, {
    writeSkill: async (tenant: string, write: SkillWrite, now: number) => {
      const [written] = await writeSkills(redis, tenant, [write], now, { knownSkills: maxSkills });
      return written as SkillWriteResult;
    },
  });
  return {
    writeSkill: (tenant: string, write: SkillWrite, now: number) =>
      limit(tenant, () => writeSkill(tenant, write, now)),
  };
}

/** With an empty Redis, every learner would seem unknown. */
export function rejectWhenBlocked<
  Calls extends Readonly<Record<string, (...args: never[]) => Promise<unknown>>>,
>(blockReason: () => string | null, calls: Calls): Calls {
  const guarded = Object.entries(calls).map(([name, call]) => [
    name,
    async (...args: never[]) => {
      if (blockReason() !== null) throw unavailable('Learner state is unavailable; retry later.');
      return call(...args);
    },
  ]);
  return Object.fromEntries(guarded) as Calls;
}
