import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClickHouseClient } from '@clickhouse/client';
import { type Config, loadConfig } from '../../../src/config.js';
import { defaultScopes, hashKey, type Scope } from '../../../src/contracts/access/access.js';
import { readStoredEndpoints } from '../../../src/embedded/data-dir.js';
import { startOnFreePort } from '../../../src/embedded/free-port.js';
import { probeRedis } from '../../../src/embedded/probe.js';
import { createClosers } from '../../../src/lifecycle.js';
import { createLogger } from '../../../src/logger.js';
import { createKeyStore } from '../../../src/store/access/api-keys.js';
import {
  connectRedis,
  type RedisClient,
  waitUntilReady,
} from '../../../src/store/redis/connection/client.js';
import { connectWarehouse } from '../../../src/warehouse/clickhouse/client.js';
import { testProcess } from '../runner/test-group.js';
import { reversed, type Scoped } from '../scope.js';
import { tempDir } from '../temp.js';
import { waitFor } from '../wait.js';
import { createDatabase, emptiedCluster, freshDatabase, givenCluster } from './embedded.js';
import { exitOf, spawnBound } from './processes.js';

export interface Service {
  readonly port: number;
  readonly baseUrl: string;
  /** Has a quota that no test reaches. */
  readonly key: string;
  readonly tenant: string;
  readonly dataDir: string;
  readonly redisUrl: string;
  readonly clickhouseUrl: string;
  /** Stops the service before the end of the test. */
  stop(): Promise<boolean>;
}

const testKey = 'test-key';

/** A free port, one key, nothing scheduled. Logs only on a Cluster run, which prints the log of failed tests. */
function testConfig(dataDir: string, change: Partial<Config> = {}): Config {
  const environment = {
    PORT: '0',
    DATA_DIR: dataDir,
    API_KEYS: `${testKey}:default:1000000000`,
    LOG_LEVEL: givenCluster === undefined ? 'silent' : 'warn',
    // Both read all tables at startup. Tests of audits and fits enable them.
    AUDIT_INTERVAL_HOURS: '0',
    FIT_INTERVAL_HOURS: '0',
  };
  return { ...loadConfig(environment), ...change };
}

/** The shipped bundle. */
const loadApp = (): Promise<typeof import('../../../src/app/app.js')> =>
  import(import.meta.resolve('#bundle/app.js'));

/**
 * Starts the service in this process until the end of the scope, with a new Redis and a new database on the test run's
 * ClickHouse. With `dataDir`, uses the servers of that folder.
 */
export async function startService(t: Scoped, change: Partial<Config> = {}): Promise<Service> {
  const { startApp } = await loadApp();
  const scope = reversed(t);
  const folder = await tempDir(scope);
  const servers = change.dataDir === undefined ? await testServers(change) : {};
  const config = testConfig(change.dataDir ?? folder, { ...servers, ...change });
  const logger = createLogger(config.logLevel, 'test');
  const closers = createClosers(logger);
  scope.after(() => closers.close());
  const { port } = await startApp(config, logger, closers);
  if (port === null) throw new Error('the service does not listen');
  const endpoints = readStoredEndpoints(config.dataDir);
  return {
    port,
    baseUrl: `http://127.0.0.1:${port}`,
    key: testKey,
    tenant: 'default',
    dataDir: config.dataDir,
    redisUrl: config.redisUrl ?? endpoints?.redisUrl ?? '',
    clickhouseUrl: config.clickhouseUrl ?? endpoints?.clickhouseUrl ?? '',
    stop: () => closers.close(),
  };
}

async function testServers({ clickhouseUrl }: Partial<Config>): Promise<Partial<Config>> {
  const given = clickhouseUrl === undefined ? await freshDatabase() : { clickhouseUrl };
  return { redisUrl: await emptiedCluster(), clickhouseUrl: given.clickhouseUrl };
}

async function startShared() {
  const { clickhouseUrl } = await createDatabase();
  const first = await startService(testProcess, { clickhouseUrl });
  return { first, keys: await keysOf(testProcess, first) };
}

let shared: ReturnType<typeof startShared> | undefined;
let sharedSecond: Promise<Service> | undefined;
let tenants = 0;

/**
 * The service that the files of this process share, with a key of a new tenant. For tests that do not affect servers and
 * other tenants. Files that call it run in the same processes (run-tests.ts).
 */
export async function sharedService(): Promise<Service & { second(): Promise<Service> }> {
  shared ??= startShared();
  const { first, keys } = await shared;
  tenants += 1;
  const tenant = `tenant-${tenants}`;
  const own = { tenant, key: await keys.add({ tenant }) };
  const second = async (): Promise<Service> => {
    sharedSecond ??= startSecondApi(testProcess, first);
    return { ...(await sharedSecond), ...own };
  };
  return { ...first, ...own, second };
}

/** Starts a service with a separate ClickHouse, for a test that stops, kills or fills it. */
export const startServiceAlone = (t: Scoped, change: Partial<Config> = {}): Promise<Service> =>
  startService(t, { clickhouseUrl: null, ...change });

/** Process id of a server that the service on this folder started. */
export function serverPid(dataDir: string, name: 'redis' | 'clickhouse'): number {
  const { [name]: server } = JSON.parse(readFileSync(join(dataDir, 'servers.json'), 'utf8'));
  if (server === undefined) throw new Error(`this service started no ${name}`);
  return server.pid;
}

/** Process id of the ClickHouse of a service from `startServiceAlone`. */
export const clickhousePid = ({ dataDir }: Pick<Service, 'dataDir'>): number =>
  serverPid(dataDir, 'clickhouse');

/** Starts another API process on the servers of a running service. */
export const startSecondApi = (
  t: Scoped,
  { dataDir }: Service,
  change: Partial<Config> = {},
): Promise<Service> => startService(t, { ...change, dataDir, role: 'api' });

export async function redisOf(t: Scoped, url: string): Promise<RedisClient> {
  const client = connectRedis(url);
  client.on('error', () => undefined);
  t.after(() => client.disconnect());
  await waitUntilReady(client, 10_000);
  return client;
}

export function clickhouseOf(t: Scoped, { clickhouseUrl }: Pick<Service, 'clickhouseUrl'>): ClickHouseClient {
  const client = connectWarehouse(clickhouseUrl);
  t.after(() => client.close());
  return client;
}

let keysMade = 0;

type KeyChange = { tenant?: string; scopes?: readonly Scope[]; quota?: number | null };

/** Creates and revokes keys of a running service. */
export async function keysOf(t: Scoped, { redisUrl, tenant: own }: Service) {
  const store = createKeyStore(await redisOf(t, redisUrl));
  /** Full name of a tenant: unique to the file in a shared service. */
  const nameOf = (tenant: string): string =>
    own === 'default' || tenant === own || tenant.startsWith(`${own}-`) ? tenant : `${own}-${tenant}`;
  return {
    store,
    nameOf,
    /** Creates and stores a key. */
    add: async ({ tenant = own, scopes = defaultScopes, quota = null }: KeyChange = {}): Promise<string> => {
      keysMade += 1;
      const key = `key-${process.pid}-${keysMade}`;
      const grant = { tenant: nameOf(tenant), scopes, requestsPerMinute: quota, development: false };
      await store.save({ keyHash: hashKey(key), ...grant });
      return key;
    },
    revoke: (key: string): Promise<boolean> => store.revoke(hashKey(key)),
  };
}

/** Starts a redis-server without supervision and persistence. */
export const startBareRedis = (t: Scoped) =>
  startOnFreePort(async (port) => {
    // Unique: otherwise the Redis of another test that took the port would pass for this one.
    const password = randomUUID();
    const url = `redis://:${password}@127.0.0.1:${port}`;
    const settings = { port, bind: '127.0.0.1', requirepass: password, save: '', appendonly: 'no' };
    const words = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`]);
    const spawnServer = (): ChildProcess => spawnBound('redis-server', words);
    let child: ChildProcess;
    const start = async (): Promise<void> => {
      child = spawnServer();
      // Another test that searches for a free port may occupy this one for a moment.
      let again = 20;
      await waitFor('Redis', async () => {
        const hasEnded = child.exitCode !== null || child.signalCode !== null;
        if (hasEnded && again-- === 0) throw new Error(`redis-server ended with exit code ${child.exitCode}`);
        if (hasEnded) child = spawnServer();
        return (await probeRedis(url)) === null;
      });
    };
    /** After the next start it is empty. */
    const kill = async (): Promise<void> => {
      child.kill('SIGKILL');
      await exitOf(child);
    };
    t.after(kill);
    await start();
    return { url, signal: (name: NodeJS.Signals) => child.kill(name), kill, start };
  });

/** The service on a Redis that a test may empty or restart, with clients, and the variables for commands. */
export async function startOnBareRedis(t: Scoped) {
  const redisServer = await startBareRedis(t);
  const service = await startService(t, { redisUrl: redisServer.url });
  return {
    ...{ redisServer, service, clickhouse: clickhouseOf(t, service) },
    redis: await redisOf(t, redisServer.url),
    env: { DATA_DIR: service.dataDir, REDIS_URL: redisServer.url },
  };
}
