/** Redis and a database for tests of commands. */
import type { TestContext } from 'node:test';
import type { ClickHouseClient } from '@clickhouse/client';
import { testDatabase } from '../inspect/warehouse.js';
import { tempDir } from '../temp.js';
import { freshDatabase, startTestRedis } from './embedded.js';

export interface Servers {
  readonly env: Record<string, string>;
  readonly clickhouse: ClickHouseClient;
  /** The same database with the read-only account. */
  readonly analystUrl: string;
}

/** Starts a Redis and creates a database with the schema. */
export async function startServers(t: TestContext): Promise<Servers> {
  const redisUrl = await startTestRedis(t);
  const { clickhouseUrl, analystUrl } = await freshDatabase();
  const { url, client } = await testDatabase(t, clickhouseUrl);
  const env = { REDIS_URL: redisUrl, CLICKHOUSE_URL: url, DATA_DIR: await tempDir(t) };
  return { env, clickhouse: client, analystUrl };
}
