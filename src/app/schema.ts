/** Brings the database to this version's schema when a process starts. */
import type { ClickHouseClient } from '@clickhouse/client';
import { troubleOf } from '../connection-trouble.js';
import type { Endpoints } from '../embedded/data-dir.js';
import { type Closers, StartError } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';
import { connectWarehouse, ensureDatabase } from '../warehouse/clickhouse/client.js';
import type { Cluster } from '../warehouse/clickhouse/cluster.js';
import { migrate, SchemaError } from '../warehouse/schema/migrations.js';

const retryMs = 2000;

/**
 * With ClickHouse unavailable the service starts all the same, for the outbox keeps what comes in; the schema follows as soon as
 * ClickHouse is there, and inserts fail and repeat until then.
 *
 * @throws StartError when the database is that of a newer version of the service, or not one of the cluster
 */
export async function prepareSchema(endpoints: Endpoints, logger: Logger, closers: Closers): Promise<void> {
  const client = connectWarehouse(endpoints.clickhouseUrl, endpoints.clickhouseCluster);
  closers.add('connection for the schema', () => client.close());
  let timer: NodeJS.Timeout | undefined;
  const prepare = async (): Promise<void> => {
    const failure = await attempt(endpoints, client, logger);
    if (failure === null || closers.closing) return;
    const { text } = troubleOf(failure);
    logger.warn({ err: failure }, `the ClickHouse schema cannot be prepared yet: ${text}`);
    timer = setTimeout(prepare, retryMs);
  };
  closers.add('schema preparation', () => clearTimeout(timer));
  await prepare();
}

/**
 * Brings the tables of a database that is there up to date.
 *
 * @returns the versions that were applied now
 * @throws StartError where no other attempt would help
 */
export async function migrateTables(client: ClickHouseClient, cluster: Cluster = null): Promise<number[]> {
  try {
    return await migrate(client, cluster);
  } catch (error) {
    throw error instanceof SchemaError ? new StartError(error.message, { cause: error }) : error;
  }
}

/** @returns why it cannot be done yet, or null when it is done */
async function attempt(
  { clickhouseUrl, clickhouseCluster }: Endpoints,
  client: ClickHouseClient,
  logger: Logger,
): Promise<unknown> {
  try {
    await ensureDatabase(clickhouseUrl, clickhouseCluster);
    const applied = await migrateTables(client, clickhouseCluster);
    if (applied.length > 0) logger.info({ versions: applied }, 'ClickHouse schema migrated');
    return null;
  } catch (error) {
    if (error instanceof StartError) throw error;
    return error;
  }
}
