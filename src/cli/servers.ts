/** Both servers, for a command that works on what the service stored. */
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { refuseOtherVersion } from '../app/deployment-watch.js';
import { migrateTables } from '../app/schema.js';
import { troubleOf } from '../connection-trouble.js';
import type { Endpoints } from '../embedded/data-dir.js';
import { joinOrStart } from '../embedded/servers.js';
import { ApiError } from '../errors.js';
import { StartError } from '../lifecycle.js';
import type { RedisClient } from '../store/redis/client.js';
import { openDeployment, unusableReason } from '../store/redis/deployment.js';
import { openRedis } from '../store/redis/open-redis.js';
import { connectWarehouse, ensureDatabase, isAlive } from '../warehouse/clickhouse/client.js';
import { holdsState } from '../warehouse/schema/presence.js';
import type { CommandContext } from './command.js';

export interface Servers {
  readonly endpoints: Endpoints;
  readonly clickhouse: ClickHouseClient;
  readonly redis: RedisClient;
}

/**
 * Does something with the servers of the running service, or with its own where none runs; the schema is brought up to
 * date before.
 *
 * @param admit is asked before the schema is touched
 * @throws StartError where a server does not answer, or is not that of a service, or of a newer one
 */
export async function withServers<Result>(
  context: CommandContext,
  work: (servers: Servers) => Promise<Result>,
  admit: (servers: Servers) => Promise<void> = ({ redis }) => refuseOtherVersion(redis),
): Promise<Result> {
  const { config, logger, closers } = context;
  const endpoints = await joinOrStart(config, logger, closers);
  const clickhouse = connectWarehouse(endpoints.clickhouseUrl, endpoints.clickhouseCluster);
  closers.add('ClickHouse connection', () => clickhouse.close());
  try {
    const redis = await openRedis(endpoints.redisUrl, context);
    const servers = { endpoints, clickhouse, redis };
    await admit(servers);
    await prepareSchema(endpoints, clickhouse);
    return await work(servers);
  } catch (error) {
    throw await explained(error, clickhouse);
  }
}

/** As `withServers`, for what needs the state in Redis. @throws StartError also where that is lost or being rebuilt */
export const withDeployment = <Result>(
  context: CommandContext,
  work: (servers: Servers, partitions: number) => Promise<Result>,
): Promise<Result> =>
  withServers(context, async (servers) => {
    const deployment = await openDeployment(servers.redis, () => holdsState(servers.clickhouse));
    if (deployment.state !== 'ready') throw new StartError(unusableReason(deployment));
    return work(servers, deployment.partitions);
  });

async function prepareSchema(
  { clickhouseUrl, clickhouseCluster }: Endpoints,
  clickhouse: ClickHouseClient,
): Promise<void> {
  await ensureDatabase(clickhouseUrl, clickhouseCluster).catch((cause: unknown) => {
    throw cause instanceof ClickHouseError
      ? new StartError(`ClickHouse: ${cause.message}`, { cause })
      : cause;
  });
  await migrateTables(clickhouse, clickhouseCluster);
}

/** Servers that are away are no defect. */
async function explained(error: unknown, clickhouse: ClickHouseClient): Promise<unknown> {
  if (error instanceof StartError) return error;
  const away = error instanceof ApiError ? 'Redis' : (await isAlive(clickhouse)) ? null : 'ClickHouse';
  if (away === null) return error;
  const { text } = troubleOf(error);
  return new StartError(`${away} does not answer: ${text}; run the command again when it does`, {
    cause: error,
  });
}
