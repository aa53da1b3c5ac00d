import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startOnFreePort } from '../../../src/embedded/free-port.js';
import { startRedis } from '../../../src/embedded/start-redis.js';
import type { SupervisedServer } from '../../../src/embedded/supervisor.js';
import { createLogger } from '../../../src/logger.js';
import { ensureDatabase } from '../../../src/warehouse/clickhouse/client.js';
import { emptiedCluster } from './given-cluster.js';
import type { Scoped } from './service.js';

const logger = createLogger('warn', 'test');
const STOP_MS = 10_000;

/** Starts a Redis that is deleted after the test; on a Cluster run, empties the Cluster. @returns the URL */
export async function startTestRedis(t: Scoped): Promise<string> {
  const cluster = await emptiedCluster();
  if (cluster !== null) return cluster;
  // Unique: otherwise the Redis of another test that took the port would pass for this one.
  const password = randomUUID();
  const server = await startServer(t, 'redis', (place) =>
    startRedis({ ...place, password, fsync: 'everysec', logger }),
  );
  return server.url;
}

export interface TestClickhouse {
  readonly clickhouseUrl: string;
  readonly analystUrl: string;
}

/** Environment variables with the URLs of the test run's ClickHouse. */
export const runClickhouseNames = {
  clickhouseUrl: 'TEST_CLICKHOUSE_URL',
  analystUrl: 'TEST_ANALYST_URL',
} as const;

let databases = 0;

/**
 * Creates a database on the test run's ClickHouse. The run drops it when this process has ended. A test that stops,
 * kills or fills ClickHouse uses `startServiceAlone` instead.
 */
export async function freshDatabase(): Promise<TestClickhouse> {
  databases += 1;
  const name = `t${process.pid}_${databases}`;
  const urlOf = (variable: string): string => {
    const server = process.env[variable];
    if (server === undefined) throw new Error(`${variable} is not set: run test files by npm test -- WORD`);
    const url = new URL(server);
    url.pathname = `/${name}`;
    return url.href;
  };
  const clickhouseUrl = urlOf(runClickhouseNames.clickhouseUrl);
  await ensureDatabase(clickhouseUrl);
  return { clickhouseUrl, analystUrl: urlOf(runClickhouseNames.analystUrl) };
}

/** Starts a server on a new folder and a free port. */
function startServer<Server extends SupervisedServer>(
  t: Scoped,
  name: string,
  start: (place: { dir: string; port: number }) => Server,
): Promise<Server> {
  return startOnFreePort(async (port) => {
    const dir = await mkdtemp(join(tmpdir(), `skilltrace-${name}-`));
    const server = start({ dir, port });
    // One hook: hooks run in the order of their registration.
    t.after(async () => {
      await server.stop(STOP_MS);
      await rm(dir, { recursive: true, force: true, maxRetries: 10 });
    });
    await server.ready;
    return server;
  });
}
