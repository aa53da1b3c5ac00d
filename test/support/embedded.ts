import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startClickhouse } from '../../src/embedded/clickhouse.js';
import { startOnFreePort } from '../../src/embedded/ports.js';
import { startRedis } from '../../src/embedded/redis.js';
import type { Supervised } from '../../src/embedded/supervisor.js';
import { createLogger } from '../../src/telemetry.js';
import { emptiedCluster } from './given-cluster.js';
import type { Scoped } from './service.js';

const logger = createLogger('warn', 'test');
const STOP_MS = 10_000;

/** A fresh embedded Redis, stopped and deleted after the test, or the Cluster that is given. @returns its URL */
export async function startTestRedis(t: Scoped): Promise<string> {
  const cluster = await emptiedCluster();
  if (cluster !== null) return cluster;
  // Its own: with another's, a Redis that took the port would be held for this one.
  const password = randomUUID();
  const server = await startServer(t, 'redis', (place) =>
    startRedis({ ...place, password, fsync: 'everysec', logger }),
  );
  return server.url;
}

/** A fresh embedded ClickHouse, stopped and deleted after the test, or after all of a file that takes databases of it. */
export async function startTestClickhouse(t: Scoped): Promise<{ clickhouseUrl: string; analystUrl: string }> {
  const { clickhouseUrl, analystUrl } = await startServer(t, 'clickhouse', (place) =>
    startClickhouse({ ...place, password: 'test', analystPassword: 'analyst', logger }),
  );
  return { clickhouseUrl, analystUrl };
}

/** On a folder and a port of its own. */
function startServer<Server extends Supervised>(
  t: Scoped,
  name: string,
  start: (place: { dir: string; port: number }) => Server,
): Promise<Server> {
  return startOnFreePort(async (port) => {
    const dir = await mkdtemp(join(tmpdir(), `skilltrace-${name}-`));
    const server = start({ dir, port });
    // One hook for both steps, because hooks run in the order of their registration.
    t.after(async () => {
      await server.stop(STOP_MS);
      await rm(dir, { recursive: true, force: true, maxRetries: 10 });
    });
    await server.ready;
    return server;
  });
}
