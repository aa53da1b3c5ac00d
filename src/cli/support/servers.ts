import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { rejectOtherVersion } from '../../app/startup/deployment-watch.js';
import {
  connectStateStore,
  type Engine,
  type EngineSettings,
  startEngine,
} from '../../app/startup/engine.js';
import { describeConnectionError } from '../../connection-problem.js';
import type { Endpoints } from '../../embedded/data-dir.js';
import { connectOrStart } from '../../embedded/servers.js';
import { ApiError, removeRetryAdvice } from '../../errors.js';
import { StartError } from '../../lifecycle.js';
import { acquireLock, releaseLock } from '../../store/redis/commands/lock.js';
import type { RedisClient } from '../../store/redis/connection/client.js';
import { formatUnusableReason, openDeployment } from '../../store/redis/server/deployment.js';
import { openRedis } from '../../store/redis/server/open-redis.js';
import { connectWarehouse, ensureDatabase, respondsToPing } from '../../warehouse/clickhouse/client.js';
import { hasStoredState } from '../../warehouse/reads/stored-state.js';
import { createSchema } from '../../warehouse/schema/create-schema.js';
import type { CommandContext } from './command.js';

export interface Servers {
  readonly endpoints: Endpoints;
  readonly clickhouse: ClickHouseClient;
  readonly redis: RedisClient;
  /** Aborts before the connections close. */
  readonly signal: AbortSignal;
}

/** @throws StartError if the engine cannot count answers */
export async function openEngine(context: CommandContext, settings: EngineSettings): Promise<Engine> {
  const { config, logger, closers } = context;
  const endpoints = await connectOrStart(config, logger, closers);
  const redis = await connectStateStore(endpoints, settings, logger, closers);
  const engine = await startEngine(redis, endpoints, settings, logger, closers);
  const blocked = engine.blockReason();
  if (blocked !== null) throw new StartError(`The command cannot start: ${blocked}`);
  return engine;
}

/** With REDIS_URL set, ClickHouse is not needed. @throws StartError */
export async function openRedisOnly(context: CommandContext): Promise<RedisClient> {
  const { config, logger, closers } = context;
  const redisUrl = config.redisUrl ?? (await connectOrStart(config, logger, closers)).redisUrl;
  return openRedis(redisUrl, context);
}

/** @throws StartError if a server is down */
export async function withServers<Result>(
  context: CommandContext,
  work: (servers: Servers) => Promise<Result>,
): Promise<Result> {
  const { config, logger, closers } = context;
  const endpoints = await connectOrStart(config, logger, closers);
  const clickhouse = connectWarehouse(endpoints.clickhouseUrl, endpoints.clickhouseCluster);
  closers.add('ClickHouse connection', () => clickhouse.close());
  try {
    const redis = await openRedis(endpoints.redisUrl, context);
    const abort = new AbortController();
    closers.add('work', () => abort.abort());
    return await work({ endpoints, clickhouse, redis, signal: abort.signal });
  } catch (error) {
    throw await explainOutage(error, clickhouse);
  }
}

/** @throws StartError also if Redis lost its state or is being rebuilt */
export const withDeployment = <Result>(
  context: CommandContext,
  work: (servers: Servers, partitions: number) => Promise<Result>,
): Promise<Result> =>
  withServers(context, async (servers) => {
    await rejectOtherVersion(servers.redis);
    await updateSchema(servers);
    const deployment = await openDeployment(servers.redis, () => hasStoredState(servers.clickhouse));
    if (deployment.state !== 'ready') throw new StartError(formatUnusableReason(deployment));
    return work(servers, deployment.partitions);
  });

/**
 * @throws StartError if the schema version or CLICKHOUSE_CLUSTER does not match, or ClickHouse denies access
 */
export async function updateSchema({ endpoints, clickhouse }: Servers): Promise<void> {
  const { clickhouseUrl, clickhouseCluster } = endpoints;
  await ensureDatabase(clickhouseUrl, clickhouseCluster).catch((cause: unknown) => {
    throw cause instanceof ClickHouseError
      ? new StartError(`ClickHouse: ${cause.message}`, { cause })
      : cause;
  });
  await createSchema(clickhouse, clickhouseCluster);
}

async function explainOutage(error: unknown, clickhouse: ClickHouseClient): Promise<unknown> {
  if (error instanceof StartError) return error;
  const server =
    error instanceof ApiError ? 'Redis' : (await respondsToPing(clickhouse)) ? null : 'ClickHouse';
  if (server === null) return error;
  const text = removeRetryAdvice(describeConnectionError(error).text);
  return new StartError(`${server} is unavailable: ${text}. Run the command again when ${server} responds`, {
    cause: error,
  });
}

export type ProcessLock = Awaited<ReturnType<typeof acquireProcessLock>>;

const renewMs = 2000;
const pollMs = 250;

/**
 * Waits up to 10 s for the lock of a dead process to expire. If the remaining time grows, its owner lives and
 * renews it.
 * @throws StartError with `message` if a living process has the lock, ApiError UNAVAILABLE
 */
export async function acquireProcessLock(
  redis: RedisClient,
  key: string,
  message: string,
  { logger, closers }: Pick<CommandContext, 'logger' | 'closers'>,
) {
  const createLockedError = (): StartError => new StartError(message);
  const holder = randomUUID();
  const acquire = (): Promise<number> => acquireLock(redis, key, holder);
  let lowestMs = Number.POSITIVE_INFINITY;
  for (let remainingMs = await acquire(); remainingMs > 0; remainingMs = await acquire()) {
    if (remainingMs > lowestMs || closers.closing) throw createLockedError();
    lowestMs = remainingMs;
    await sleep(pollMs);
  }
  let isLost = false;
  const renew = async (): Promise<void> => {
    isLost ||= (await acquire()) > 0;
  };
  /** @throws StartError if another process has the lock */
  const check = (): void => {
    if (isLost) throw createLockedError();
  };
  /** @throws StartError if another process has the lock, ApiError UNAVAILABLE */
  const confirm = (): Promise<void> => renew().then(check);
  const logError = (text: string) => (error: unknown) => logger.debug({ err: error }, text);
  const timer = setInterval(
    () => void renew().catch(logError('renewing the lock failed; the command retries')),
    renewMs,
  );
  closers.add('lock', async () => {
    clearInterval(timer);
    await releaseLock(redis, key, holder).catch(logError('releasing the lock failed; it expires'));
  });
  return { check, confirm };
}
