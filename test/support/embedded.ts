import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { startClickhouse } from '../../src/embedded/clickhouse.js';
import { freePort } from '../../src/embedded/ports.js';
import { startRedis } from '../../src/embedded/redis.js';
import type { Supervised } from '../../src/embedded/supervisor.js';
import { createLogger } from '../../src/telemetry.js';
import { emptiedCluster } from './given-cluster.js';

const logger = createLogger('warn', 'test');
const STOP_MS = 10_000;

/** A fresh embedded Redis, stopped and deleted after the test, or the Cluster that is given. @returns its URL */
export async function startTestRedis(t: TestContext): Promise<string> {
  const cluster = await emptiedCluster();
  if (cluster !== null) return cluster;
  const dir = await mkdtemp(join(tmpdir(), 'skilltrace-redis-'));
  const port = await freePort();
  const server = startRedis({ dir, port, password: 'test', fsync: 'everysec', logger });
  endAfter(t, server, dir);
  await server.ready;
  return server.url;
}

/** A fresh embedded ClickHouse, stopped and deleted after the test. */
export async function startTestClickhouse(
  t: TestContext,
): Promise<{ clickhouseUrl: string; analystUrl: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'skilltrace-clickhouse-'));
  const port = await freePort();
  const server = startClickhouse({ dir, port, password: 'test', analystPassword: 'analyst', logger });
  endAfter(t, server, dir);
  await server.ready;
  return { clickhouseUrl: server.clickhouseUrl, analystUrl: server.analystUrl };
}

/** One hook for both steps, because hooks run in the order of their registration. */
function endAfter(t: TestContext, server: Supervised, dir: string): void {
  t.after(async () => {
    await server.stop(STOP_MS);
    await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  });
}
