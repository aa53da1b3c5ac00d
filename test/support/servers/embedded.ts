import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Cluster } from 'ioredis';
import { startOnFreePort } from '../../../src/embedded/free-port.js';
import { startRedis } from '../../../src/embedded/start-redis.js';
import { createLogger } from '../../../src/logger.js';
import { connectRedis, waitUntilReady } from '../../../src/store/redis/connection/client.js';
import { connectWarehouse, ensureDatabase } from '../../../src/warehouse/clickhouse/client.js';
import { testFile } from '../runner/test-group.js';
import { reversed, type Scoped } from '../scope.js';
import { tempDir } from '../temp.js';

const logger = createLogger('warn', 'test');

/** full/cluster.test.ts runs other test files on a Redis Cluster. */
export const givenClusterName = 'TEST_REDIS_CLUSTER';

/** URL of the Cluster for this test file; undefined: the file starts a Redis. */
export const givenCluster = process.env[givenClusterName];

/** Deletes all data of the given Cluster. @returns its URL */
export async function emptiedCluster(): Promise<string | null> {
  if (givenCluster === undefined) return null;
  const client = connectRedis(givenCluster) as Cluster;
  try {
    await waitUntilReady(client, 10_000);
    await Promise.all(client.nodes('master').map((node) => node.flushall()));
  } finally {
    client.disconnect();
  }
  return givenCluster;
}

/** Starts a Redis on a folder, by default a temporary one, until the test ends. */
export const startRedisOn = (t: Scoped, dir?: string) =>
  startOnFreePort(async (port) => {
    const scope = reversed(t);
    const folder = dir ?? (await tempDir(scope));
    // The password is unique: otherwise the Redis of another test that took the port would pass for this one.
    const options = { dir: folder, port, password: randomUUID(), fsync: 'everysec' as const };
    const server = startRedis({ ...options, logger });
    const stop = () => server.stop(10_000);
    scope.after(stop);
    await server.ready;
    return { url: server.url, stop };
  });

/** Starts a Redis that is deleted after the test; on a Cluster run, empties the Cluster. @returns the URL */
export const startTestRedis = async (t: Scoped): Promise<string> =>
  (await emptiedCluster()) ?? (await startRedisOn(t)).url;

/** Environment variables with the URLs of the test run's ClickHouse. */
export const runClickhouseNames = { clickhouseUrl: 'TEST_CLICKHOUSE_URL', analystUrl: 'TEST_ANALYST_URL' };

let databases = 0;

/**
 * Creates a database on the test run's ClickHouse, for the current test file. A test that stops, kills or fills ClickHouse uses
 * `startServiceAlone` instead.
 */
export async function freshDatabase() {
  const database = await createDatabase();
  testFile.after(() => dropDatabase(database.clickhouseUrl));
  return database;
}

/** Creates a database on the test run's ClickHouse until the end of the run. */
export async function createDatabase() {
  databases += 1;
  const name = `t${process.pid}_${databases}`;
  const urlOf = (variable: string): string => {
    const server = process.env[variable] ?? assert.fail(`${variable} is not set: use npm test -- WORD`);
    return new URL(`/${name}`, server).href;
  };
  const clickhouseUrl = urlOf(runClickhouseNames.clickhouseUrl);
  await ensureDatabase(clickhouseUrl);
  return { clickhouseUrl, analystUrl: urlOf(runClickhouseNames.analystUrl) };
}

async function dropDatabase(url: string): Promise<void> {
  const client = connectWarehouse(url);
  await client.command({ query: `DROP DATABASE IF EXISTS ${new URL(url).pathname.slice(1)}` });
  await client.close();
}
