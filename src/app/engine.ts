/** The state store, ClickHouse and the workers over both: what counts answers, for the API and for imports alike. */
import type { ClickHouseClient } from '@clickhouse/client';
import { type Compute, startCompute } from '../compute/pool.js';
import { createLimiter } from '../concurrency.js';
import type { SkillLimits } from '../contracts/tasks.js';
import type { Endpoints } from '../embedded/data-dir.js';
import { unavailable } from '../errors.js';
import type { Closers } from '../lifecycle.js';
import type { SkillWritePorts } from '../services/catalogue/write-skill.js';
import type { MasteryPorts } from '../services/read/read-mastery.js';
import type { SkillPorts } from '../services/read/read-skills.js';
import { type ServedModels, serveModels } from '../store/catalogue/catalogue-cache.js';
import { putSkills, type SkillWritten } from '../store/catalogue/catalogue-store.js';
import { forgetSkill, isKnownSkill, listKnownSkills } from '../store/catalogue/known-skills.js';
import { createGoalStore, type GoalStore } from '../store/learners/goals.js';
import { readLearner, readOwnRecord } from '../store/learners/learner-reads.js';
import { createJournal, type Journal } from '../store/outbox/journal.js';
import { createOutbox, type Outbox } from '../store/outbox/outbox.js';
import type { RedisClient } from '../store/redis/client.js';
import { partitionOf } from '../store/redis/keys.js';
import { openRedis } from '../store/redis/open-redis.js';
import type { Logger } from '../telemetry.js';
import { connectWarehouse } from '../warehouse/clickhouse/client.js';
import { type DeploymentWatch, refuseOtherVersion, watchDeployment } from './deployment-watch.js';

/** What the parts of a process share. */
export interface Engine extends DeploymentWatch {
  readonly endpoints: Endpoints;
  readonly logger: Logger;
  readonly closers: Closers;
  readonly redis: RedisClient;
  readonly clickhouse: ClickHouseClient;
  readonly outbox: Outbox;
  readonly journal: Journal;
  readonly compute: Compute;
  readonly learners: MasteryPorts['learners'];
  readonly skills: SkillPorts['skills'];
  readonly models: MasteryPorts['models'];
  readonly goals: GoalStore;
  readonly catalogue: SkillWritePorts['catalogue'];
}

/** About 26 MB of Redis for all partitions together. */
const forecastsBound = 10_000;

/** What an engine takes from the configuration. */
export interface EngineSettings {
  /** Replicas of Redis that must have an answer before it is confirmed. */
  readonly redisWaitReplicas: number;
  /** Most rows that the outboxes of all partitions together may hold. */
  readonly outboxMaxRows: number;
  /** 0: as many as the load asks for. */
  readonly lanes: number;
  readonly skillLimits: SkillLimits;
}

/** @throws StartError when Redis cannot be reached, or holds learners of another version */
export const connectState = (
  { redisUrl }: Endpoints,
  { redisWaitReplicas }: Pick<EngineSettings, 'redisWaitReplicas'>,
  logger: Logger,
  closers: Closers,
): Promise<RedisClient> => openRedis(redisUrl, { logger, closers }, redisWaitReplicas, refuseOtherVersion);

/** @param redis connected by `connectState` */
export async function startEngine(
  redis: RedisClient,
  endpoints: Endpoints,
  { redisWaitReplicas: waitReplicas, outboxMaxRows, skillLimits, lanes }: EngineSettings,
  logger: Logger,
  closers: Closers,
): Promise<Engine> {
  const clickhouse = connectWarehouse(endpoints.clickhouseUrl, endpoints.clickhouseCluster);
  closers.add('ClickHouse connection', () => clickhouse.close());
  const watch = await watchDeployment(redis, clickhouse, logger, closers);
  const { partitions, blocked } = watch;
  const compute = startCompute(
    {
      redisUrl: endpoints.redisUrl,
      waitReplicas,
      partitions,
      outboxBound: Math.floor(outboxMaxRows / partitions),
      forecastsBound,
      skillLimits,
    },
    (tenant, userId) => partitionOf(tenant, userId, partitions),
    lanes,
    logger,
  );
  closers.add('workers', () => compute.close());
  const placeOf = (tenant: string, userId: string) => ({
    partition: partitionOf(tenant, userId, partitions),
    tenant,
    userId,
  });
  const models = servedModels(redis, logger, closers);
  const { forecast, whatIf } = compute;
  return {
    ...{ ...watch, endpoints, logger, closers, redis, clickhouse },
    outbox: createOutbox(redis, partitions),
    journal: createJournal(redis, partitions),
    compute: { ...compute, ...whileUsable(blocked, { forecast, whatIf }) },
    learners: whileUsable(blocked, {
      read: (tenant, userId) => readLearner(redis, placeOf(tenant, userId)),
      own: (tenant, userId) => readOwnRecord(redis, placeOf(tenant, userId)),
    } satisfies Engine['learners']),
    skills: whileUsable(blocked, {
      list: (tenant, after, atMost) => listKnownSkills(redis, tenant, after, atMost),
      has: (tenant, skillId) => isKnownSkill(redis, tenant, skillId),
      forget: (tenant, skillId) => forgetSkill(redis, tenant, skillId),
    } satisfies Engine['skills']),
    models: whileUsable(blocked, { current: models.get }),
    goals: whileUsable(blocked, createGoalStore(redis, partitions)),
    catalogue: catalogueOf(redis, skillLimits.perTenant, blocked),
  };
}

/** One write at a time of a tenant: each looks first whether the tenant has room for another skill. */
function catalogueOf(
  redis: RedisClient,
  knownSkills: number,
  blocked: () => string | null,
): Engine['catalogue'] {
  const limit = createLimiter({
    maxRunning: 64,
    maxRunningOfTenant: 1,
    maxQueuedOfTenant: 1000,
    maxQueueWaitMs: 5000,
    refusal: 'Too many skills are set at the same time; try again later',
  });
  const { put } = whileUsable(blocked, {
    put: async (tenant, write, now) => {
      const [written] = await putSkills(redis, tenant, [write], now, { knownSkills });
      return written as SkillWritten;
    },
  } satisfies Engine['catalogue']);
  return { put: (tenant, write, now) => limit(tenant, () => put(tenant, write, now)) };
}

function servedModels(redis: RedisClient, logger: Logger, closers: Closers): ServedModels {
  const served = serveModels(() => Promise.resolve(redis), logger);
  closers.add('model watch', () => served.close());
  return served;
}

/** The same calls, refused while the state cannot be used: an empty Redis would answer that nobody exists. */
export function whileUsable<Calls extends Readonly<Record<string, (...args: never[]) => Promise<unknown>>>>(
  blocked: () => string | null,
  calls: Calls,
): Calls {
  const guarded = Object.entries(calls).map(([name, call]) => [
    name,
    async (...args: never[]) => {
      if (blocked() !== null) throw unavailable('The state of the learners is not available right now');
      return call(...args);
    },
  ]);
  return Object.fromEntries(guarded) as Calls;
}
