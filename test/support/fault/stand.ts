/** Deployments of the fault tests: which processes there are, and how they are reached. */

import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readStoredEndpoints } from '../../../src/embedded/data-dir.js';
import { findFreePort } from '../../../src/embedded/free-port.js';
import { startEmbeddedServers } from '../../../src/embedded/servers.js';
import { createClosers } from '../../../src/lifecycle.js';
import { createLogger } from '../../../src/logger.js';
import { childrenOf } from '../servers/processes.js';
import { dataFolder, type Scoped } from '../servers/service.js';
import { type Gateway, startGateway } from './gateway.js';
import { type ServiceProcess, startServiceProcess } from './supervised.js';

/** What can be killed or stopped. */
export type Part = 'api' | 'pipeline' | 'redis' | 'clickhouse';

export interface Stand {
  readonly name: string;
  readonly port: number;
  readonly tenants: readonly string[];
  readonly redisUrl: string;
  /** Of the server itself, whatever stands before it. */
  readonly clickhouseUrl: string;
  /** Null where the service's own processes reach ClickHouse directly. */
  readonly gateway: Gateway | null;
  /** Process ids now, by part; where there are several of a kind, any of them. */
  pids(part: Part): readonly number[];
  /** Folder of the orders to worker threads. */
  readonly orders: string;
  stop(): Promise<void>;
}

export interface StandOptions {
  readonly fsync: 'everysec' | 'always';
  /** Rows that all outboxes together may hold. */
  readonly outboxMaxRows?: number;
  /** Further settings of its processes. */
  readonly env?: Readonly<Record<string, string>>;
}

const tenants = ['tenant-a', 'tenant-b', 'tenant-c'];
/** A key whose requests are counted in Redis one by one. */
export const countedKey = 'counted';
const keys = [
  ...tenants.map((tenant) => `${tenant}:${tenant}:1000000000`),
  `${countedKey}:tenant-a:10000`,
].join();

/** Servers of the test's own, one process that takes answers and one that drains, with a proxy before ClickHouse. */
export async function startSplit(
  t: Scoped,
  { fsync, outboxMaxRows, env = {} }: StandOptions,
): Promise<Stand> {
  const { path: dataDir, remove } = await dataFolder();
  const logger = createLogger('silent', 'test');
  const closers = createClosers(logger, 20_000);
  t.after(async () => {
    await closers.close();
    await remove();
  });
  const endpoints = await startEmbeddedServers(
    {
      dataDir,
      redisUrl: null,
      clickhouseUrl: null,
      embeddedRedisPort: 0,
      embeddedClickhousePort: 0,
      embeddedRedisFsync: fsync,
    },
    logger,
    closers,
  );
  const gateway = await startGateway(t, endpoints.clickhouseUrl);
  const { port, orders, start } = await processStarter(t, dataDir, {
    REDIS_URL: endpoints.redisUrl,
    CLICKHOUSE_URL: gateway.url,
    ...(outboxMaxRows !== undefined && { OUTBOX_MAX_ROWS: `${outboxMaxRows}` }),
    ...env,
  });
  const pipeline = await start('pipeline', { PORT: '' });
  const api = await start('api', {});
  const { redisUrl, clickhouseUrl } = endpoints;
  const pids = (part: Part): number[] =>
    part === 'api' ? [api.pid()] : part === 'pipeline' ? [pipeline.pid()] : [serverPid(dataDir, part)];
  const stop = async (): Promise<void> => {
    await Promise.all([api.stop(), pipeline.stop()]);
    await closers.close();
  };
  return {
    name: `api + pipeline, ${fsync}`,
    port,
    tenants,
    redisUrl,
    clickhouseUrl,
    gateway,
    pids,
    orders,
    stop,
  };
}

/** One process with everything, or with as many processes that take answers. */
export async function startWhole(
  t: Scoped,
  apiProcesses: number,
  env: Readonly<Record<string, string>> = {},
): Promise<Stand> {
  const { path: dataDir, remove } = await dataFolder();
  t.after(remove);
  const { port, orders, start } = await processStarter(t, dataDir, {
    API_PROCESSES: `${apiProcesses}`,
    // The test has connections of its own, which are to last.
    EMBEDDED_REDIS_PORT: `${await findFreePort()}`,
    EMBEDDED_CLICKHOUSE_PORT: `${await findFreePort()}`,
    ...env,
  });
  const whole = await start('all', {});
  const endpoints = readStoredEndpoints(dataDir);
  if (endpoints === null) throw new Error('the service has not told where its servers are');
  const { redisUrl, clickhouseUrl } = endpoints;
  const pids = (part: Part): readonly number[] => {
    if (part === 'redis' || part === 'clickhouse') return [serverPid(dataDir, part)];
    return part === 'pipeline' || apiProcesses === 1 ? [whole.pid()] : childrenOf(whole.pid(), 'api-process');
  };
  const name = apiProcesses === 1 ? 'one process' : `${apiProcesses} API processes`;
  return { name, port, tenants, redisUrl, clickhouseUrl, gateway: null, pids, orders, stop: whole.stop };
}

interface ProcessStarter {
  readonly port: number;
  readonly orders: string;
  start(role: 'api' | 'pipeline' | 'all', env: Readonly<Record<string, string>>): Promise<ServiceProcess>;
}

async function processStarter(
  t: Scoped,
  dataDir: string,
  shared: Readonly<Record<string, string>>,
): Promise<ProcessStarter> {
  const orders = join(dataDir, 'orders');
  await mkdir(orders);
  const port = await findFreePort();
  const common = { DATA_DIR: dataDir, PORT: `${port}`, API_KEYS: keys, FIT_INTERVAL_HOURS: '0', ...shared };
  return {
    port,
    orders,
    start: (role, env) =>
      startServiceProcess(t, { name: role, orders, env: { ...common, ...env, ROLE: role } }),
  };
}

function serverPid(dataDir: string, name: 'redis' | 'clickhouse'): number {
  const servers: Record<string, { pid: number }> = JSON.parse(
    readFileSync(join(dataDir, 'servers.json'), 'utf8'),
  );
  return servers[name]?.pid ?? 0;
}
