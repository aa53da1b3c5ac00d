/** The state store and the workers over it: what counts answers, for the API and for imports alike. */
import type { ClickHouseClient } from '@clickhouse/client';
import { type Compute, startCompute } from '../compute/pool.js';
import { createLimiter, type LimiterOptions } from '../concurrency.js';
import type { SkillLimits } from '../contracts/tasks.js';
import type { Endpoints } from '../embedded/data-dir.js';
import { unavailable } from '../errors.js';
import type { Closers } from '../lifecycle.js';
import type { SkillWritePorts } from '../services/catalogue/write-skill.js';
import type { MasteryPorts } from '../services/read/read-mastery.js';
import type { SkillPorts } from '../services/read/read-skills.js';
import { createServedModels, type ServedModels } from '../store/catalogue/catalogue-cache.js';
import { putSkills, type SkillWritten } from '../store/catalogue/catalogue-store.js';
import { forgetSkill, isKnownSkill, listKnownSkills } from '../store/catalogue/known-skills.js';
import { createGoalStore, type GoalStore } from '../store/learners/goal-store.js';
import { readLearner, readOwnRecord } from '../store/learners/learner-reads.js';
import { createModelCache } from '../store/models/model-cache.js';
import type { RedisClient } from '../store/redis/client.js';
import { partitionOf } from '../store/redis/keys.js';
import { openRedis } from '../store/redis/open-redis.js';
import type { Logger } from '../telemetry.js';
import { connectWarehouse } from '../warehouse/clickhouse/client.js';
import { type DeploymentWatch, watchDeployment } from './deployment-watch.js';
import { refuseOtherVersion } from './model-version.js';

export interface Engine {
  readonly redis: RedisClient;
  readonly clickhouse: ClickHouseClient;
  readonly partitions: number;
  readonly compute: Compute;
  readonly learners: MasteryPorts['learners'];
  readonly skills: SkillPorts['skills'];
  readonly models: MasteryPorts['models'];
  readonly goals: GoalStore;
  readonly catalogue: SkillWritePorts['catalogue'];
  /** Why the state in Redis cannot be used, or null. */
  readonly blocked: () => string | null;
  readonly onReturn: DeploymentWatch['onReturn'];
}

/** About 26 MB of Redis for all partitions together. */
const forecastsBound = 10_000;

/** What an engine is told by the configuration. */
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
  { redisWaitReplicas }: EngineSettings,
  logger: Logger,
  closers: Closers,
): Promise<RedisClient> =>
  openRedis(redisUrl, { logger, closers, waitReplicas: redisWaitReplicas, check: refuseOtherVersion });

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
  const { partitions } = watch;
  const { redisUrl } = endpoints;
  const outboxBound = Math.floor(outboxMaxRows / partitions);
  const settings = { redisUrl, waitReplicas, partitions, outboxBound, forecastsBound, skillLimits };
  const partitionOfUser = (tenant: string, userId: string) => partitionOf(tenant, userId, partitions);
  const compute = startCompute(settings, partitionOfUser, lanes, logger);
  closers.add('workers', () => compute.close());
  const { blocked } = watch;
  return {
    redis,
    clickhouse,
    partitions,
    compute: {
      ...compute,
      forecast: (...order) => whileUsable(blocked, () => compute.forecast(...order)),
      whatIf: (...order) => whileUsable(blocked, () => compute.whatIf(...order)),
    },
    ...statePorts(redis, skillLimits.perTenant, watch, logger, closers),
    blocked,
    onReturn: watch.onReturn,
  };
}

/** One at a time of a tenant: each looks first whether the tenant has room for another skill. */
const writesOfSkills: LimiterOptions = {
  maxRunning: 64,
  maxRunningOfTenant: 1,
  maxQueuedOfTenant: 1000,
  maxQueueWaitMs: 5000,
  refusal: 'Too many skills are set at the same time; try again later',
};

type StatePorts = Pick<Engine, 'learners' | 'skills' | 'models' | 'goals' | 'catalogue'>;

/** What requests read and write in Redis beside answers. */
function statePorts(
  redis: RedisClient,
  knownSkills: number,
  { partitions, blocked }: DeploymentWatch,
  logger: Logger,
  closers: Closers,
): StatePorts {
  const models = servedModels(redis, logger, closers);
  const goals = createGoalStore(redis, partitions);
  const inOrder = createLimiter(writesOfSkills);
  const placeOf = (tenant: string, userId: string) => ({
    partition: partitionOf(tenant, userId, partitions),
    tenant,
    userId,
  });
  const usable = <Value>(read: () => Promise<Value>): Promise<Value> => whileUsable(blocked, read);
  return {
    learners: {
      read: (tenant, userId) => usable(() => readLearner(redis, placeOf(tenant, userId))),
      own: (tenant, userId) => usable(() => readOwnRecord(redis, placeOf(tenant, userId))),
    },
    skills: {
      list: (tenant, after, atMost) => usable(() => listKnownSkills(redis, tenant, after, atMost)),
      has: (tenant, skillId) => usable(() => isKnownSkill(redis, tenant, skillId)),
      forget: (tenant, skillId) => usable(() => forgetSkill(redis, tenant, skillId)),
    },
    models: { current: (tenant) => usable(() => models.get(tenant)) },
    goals: {
      read: (tenant, userId) => usable(() => goals.read(tenant, userId)),
      write: (write) => usable(() => goals.write(write)),
    },
    catalogue: {
      put: async (tenant, write, now) => {
        const put = () => putSkills(redis, tenant, [write], now, { knownSkills });
        const [written] = await inOrder(tenant, () => usable(put));
        return written as SkillWritten;
      },
    },
  };
}

function servedModels(redis: RedisClient, logger: Logger, closers: Closers): ServedModels {
  const client = () => Promise.resolve(redis);
  const models = createModelCache({
    redis: client,
    onUnreadable: (error, tenant, version) =>
      logger.error({ err: error, tenant, version }, 'a model cannot be read: the one before stays in force'),
  });
  closers.add('model watch', () => models.close());
  return createServedModels({
    models,
    redis: client,
    onUnreadable: (error, tenant, mark) =>
      logger.error({ err: error, tenant, mark }, 'a catalogue cannot be read: its tenant is refused'),
  });
}

/** An emptied Redis would answer that nobody exists. */
export async function whileUsable<Value>(
  blocked: () => string | null,
  read: () => Promise<Value>,
): Promise<Value> {
  const reason = blocked();
  if (reason !== null) throw unavailable('The state of the learners is not available right now');
  return read();
}
