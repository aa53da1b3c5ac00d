/** The state store and the workers over it: what counts answers, for the API and for imports alike. */
import type { ClickHouseClient } from '@clickhouse/client';
import { type Compute, startCompute } from './compute/pool.js';
import type { Endpoints } from './embedded/data-dir.js';
import { unavailable } from './errors.js';
import { type Closers, StartError } from './lifecycle.js';
import type { LearnerReader, ModelReader, SkillDirectory } from './services/ports.js';
import { connectRedis, type RedisClient, whenReady } from './store/client.js';
import { type Deployment, defaultPartitions, openDeployment } from './store/deployment.js';
import { partitionOf } from './store/keys.js';
import { isKnownSkill, listKnownSkills, readLearner } from './store/learner-store.js';
import { createModelCache } from './store/model-cache.js';
import type { Logger } from './telemetry.js';
import { connectWarehouse } from './warehouse/client.js';
import { hasAttempts } from './warehouse/presence.js';

export interface Engine {
  readonly redis: RedisClient;
  readonly clickhouse: ClickHouseClient;
  readonly partitions: number;
  readonly compute: Compute;
  readonly learners: LearnerReader;
  readonly skills: SkillDirectory;
  readonly models: ModelReader;
  /** Why the state in Redis cannot be used, or null. */
  readonly blocked: () => string | null;
}

/**
 * Most rows that one partition's outbox may hold: an hour without ClickHouse at 1,000 answers a second, in about
 * 2 GB of Redis for all partitions together.
 */
const outboxBound = 250_000;
const redisTimeoutMs = 10_000;
const watchMs = 1000;

/** @throws StartError when Redis cannot be reached */
export async function startEngine(endpoints: Endpoints, logger: Logger, closers: Closers): Promise<Engine> {
  const redis = connectRedis(endpoints.redisUrl);
  closers.add('Redis connection', () => redis.disconnect());
  redis.on('error', (error) => logger.debug({ err: error }, 'Redis connection'));
  const clickhouse = connectWarehouse(endpoints.clickhouseUrl);
  closers.add('ClickHouse connection', () => clickhouse.close());
  await redisReady(redis);
  const watch = await watchDeployment(redis, clickhouse, logger, closers);
  const { partitions } = watch;
  const settings = { redisUrl: endpoints.redisUrl, partitions, outboxBound };
  const compute = startCompute(
    settings,
    ({ tenant, userId }) => partitionOf(tenant, userId, partitions),
    logger,
  );
  closers.add('workers', () => compute.close());
  const { blocked } = watch;
  const models = createModelCache({
    redis: () => Promise.resolve(redis),
    onUnreadable: (error, tenant, version) =>
      logger.error({ err: error, tenant, version }, 'a model cannot be read: the one before stays in force'),
  });
  closers.add('model watch', () => models.close());
  return {
    redis,
    clickhouse,
    partitions,
    compute: { ...compute, forecast: (task) => whileUsable(blocked, () => compute.forecast(task)) },
    learners: {
      read: (tenant, userId) => {
        const partition = partitionOf(tenant, userId, partitions);
        return whileUsable(blocked, () => readLearner(redis, { partition, tenant, userId }));
      },
    },
    skills: {
      list: (tenant) => whileUsable(blocked, () => listKnownSkills(redis, tenant)),
      has: (tenant, skillId) => whileUsable(blocked, () => isKnownSkill(redis, tenant, skillId)),
    },
    models: { current: (tenant) => whileUsable(blocked, () => models.get(tenant)) },
    blocked,
  };
}

/** An emptied Redis would answer that nobody exists. */
async function whileUsable<Value>(blocked: () => string | null, read: () => Promise<Value>): Promise<Value> {
  const reason = blocked();
  if (reason !== null) throw unavailable('The state of the learners is not available right now');
  return read();
}

async function redisReady(redis: RedisClient): Promise<void> {
  try {
    await whenReady(redis, redisTimeoutMs);
  } catch (error) {
    throw new StartError('REDIS_URL: Redis cannot be reached there; start it or correct the URL', {
      cause: error,
    });
  }
}

interface DeploymentWatch {
  readonly partitions: number;
  readonly blocked: () => string | null;
}

/** Looks again and again whether Redis still has the state: it may come back empty at any time. */
async function watchDeployment(
  redis: RedisClient,
  clickhouse: ClickHouseClient,
  logger: Logger,
  closers: Closers,
): Promise<DeploymentWatch> {
  let deployment: Deployment | null = null;
  let looking = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    try {
      const found = await openDeployment(redis, () => hasAttempts(clickhouse));
      if (found.state === 'emptied' && deployment?.state !== 'emptied') {
        logger.error(
          'Redis came back empty while ClickHouse has attempts: answers are refused until it is rebuilt',
        );
      }
      deployment = found;
    } catch (error) {
      logger.debug({ err: error }, 'Redis or ClickHouse is away: the deployment is looked at later');
    } finally {
      looking = false;
    }
  };
  await look();
  const timer = setInterval(look, watchMs);
  closers.add('deployment watch', () => clearInterval(timer));
  const first = deployment as Deployment | null;
  return {
    // While Redis cannot tell how many there are, nothing is read or written.
    partitions: first?.state === 'ready' ? first.partitions : defaultPartitions,
    blocked: () => blockedReason(deployment),
  };
}

function blockedReason(deployment: Deployment | null): string | null {
  if (deployment === null) return 'Redis has no state yet, and ClickHouse cannot tell whether it is new';
  return deployment.state === 'ready' ? null : 'Redis came back empty while ClickHouse has attempts';
}
