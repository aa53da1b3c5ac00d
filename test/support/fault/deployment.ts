/** Deployments of the fault tests, which kill and stop the processes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config.js';
import { readStoredEndpoints } from '../../../src/embedded/data-dir.js';
import { findFreePort } from '../../../src/embedded/free-port.js';
import { startEmbeddedServers } from '../../../src/embedded/servers.js';
import { supervise } from '../../../src/embedded/supervisor.js';
import { createClosers } from '../../../src/lifecycle.js';
import { createLogger } from '../../../src/logger.js';
import { reversed, type Scoped } from '../scope.js';
import { childrenOf } from '../servers/processes.js';
import { serverPid } from '../servers/service.js';
import { environment, serviceProgram } from '../servers/service-process.js';
import { tempDir } from '../temp.js';
import { type Gateway, startGateway } from './gateway.js';

export type Part = 'api' | 'pipeline' | 'redis' | 'clickhouse';
type Env = Readonly<Record<string, string>>;

export interface Deployment {
  readonly name: string;
  readonly port: number;
  readonly tenants: readonly string[];
  readonly redisUrl: string;
  /** Bypasses the gateway. */
  readonly clickhouseUrl: string;
  /** Between the service and ClickHouse; null in a whole deployment. */
  readonly gateway: Gateway | null;
  /** Folder for `orderThreads`. */
  readonly orders: string;
  pids(part: Part): readonly number[];
  stop(): Promise<void>;
}

const tenants = ['tenant-a', 'tenant-b', 'tenant-c'];
/** A key with a quota that is counted exactly in Redis. */
export const countedKey = 'counted';
const keys = [...tenants.map((name) => `${name}:${name}:1000000000`), `${countedKey}:tenant-a:10000`].join();
const logger = createLogger('silent', 'test');

/** One API process and one pipeline process, with a gateway before ClickHouse. */
export async function startSplit(
  t: Scoped,
  fsync: 'everysec' | 'always' = 'everysec',
  env: Env = {},
): Promise<Deployment> {
  const scope = reversed(t);
  const dataDir = await tempDir(scope);
  const closers = createClosers(logger, 20_000);
  scope.after(() => closers.close());
  const config = loadConfig({ DATA_DIR: dataDir, EMBEDDED_REDIS_FSYNC: fsync });
  const { redisUrl, clickhouseUrl } = await startEmbeddedServers(config, logger, closers);
  const gateway = await startGateway(scope, clickhouseUrl);
  const settings = { REDIS_URL: redisUrl, CLICKHOUSE_URL: gateway.url, ...env };
  const { port, orders, start } = await prepareProcesses(scope, dataDir, settings);
  const pipeline = await start({ ROLE: 'pipeline', PORT: '' });
  const api = await start({ ROLE: 'api' });
  return {
    ...{ name: `api + pipeline, ${fsync}`, port, tenants, redisUrl, clickhouseUrl, gateway, orders },
    pids: (part) => serverPids(dataDir, part) ?? [part === 'api' ? api.pid() : pipeline.pid()],
    stop: async () => {
      await Promise.all([api.stop(), pipeline.stop()]);
      await closers.close();
    },
  };
}

/** One process with all parts, or with several API processes. */
export async function startWhole(t: Scoped, apiProcesses: number, env: Env = {}): Promise<Deployment> {
  const scope = reversed(t);
  const dataDir = await tempDir(scope);
  const { port, orders, start } = await prepareProcesses(scope, dataDir, {
    API_PROCESSES: `${apiProcesses}`,
    // The test's own connections must survive a restart.
    EMBEDDED_REDIS_PORT: `${await findFreePort()}`,
    EMBEDDED_CLICKHOUSE_PORT: `${await findFreePort()}`,
    ...env,
  });
  const service = await start({ ROLE: 'all' });
  const { redisUrl, clickhouseUrl } = readStoredEndpoints(dataDir) ?? assert.fail('no endpoints.json');
  const name = apiProcesses === 1 ? 'one process' : `${apiProcesses} API processes`;
  return {
    ...{ name, port, tenants, redisUrl, clickhouseUrl, gateway: null, orders, stop: service.stop },
    pids: (part) => {
      const isSeparate = part === 'api' && apiProcesses > 1;
      const own = () => (isSeparate ? childrenOf(service.pid(), 'api-process') : [service.pid()]);
      return serverPids(dataDir, part) ?? own();
    },
  };
}

const serverPids = (dataDir: string, part: Part): readonly number[] | null =>
  part === 'redis' || part === 'clickhouse' ? [serverPid(dataDir, part)] : null;

async function prepareProcesses(t: Scoped, dataDir: string, shared: Env) {
  const orders = join(dataDir, 'orders');
  await mkdir(orders);
  const port = await findFreePort();
  const common = { DATA_DIR: dataDir, PORT: `${port}`, API_KEYS: keys, FIT_INTERVAL_HOURS: '0', ...shared };
  return { port, orders, start: (env: Env) => startServiceProcess(t, orders, { ...common, ...env }) };
}

/** Ends the process with the test's process, also if that was killed. */
const tether = new URL('../../../bench/targets/tether.js', import.meta.url).href;
const sabotage = new URL('./sabotage.js', import.meta.url).href;
const stopMs = 12_000;

/** A process of the service that restarts whenever it ends. Resolves when it serves. */
export async function startServiceProcess(t: Scoped, orders: string, env: Env) {
  const preloads = `--import=${tether} --import=${sabotage}?orders=${encodeURIComponent(orders)}`;
  const options = `${process.env.NODE_OPTIONS ?? ''} ${preloads}`;
  const supervised = supervise({
    name: 'service',
    logger,
    maxDelayMs: 400,
    spawn: () =>
      spawn(process.execPath, ['-e', serviceProgram], {
        detached: true,
        env: { ...environment(), LOG_LEVEL: 'fatal', NODE_OPTIONS: options, ...env },
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    ready: async ({ stdout }, signal) => {
      if (stdout === null) throw new Error('stdout is not a pipe');
      await once(stdout, 'data', { signal });
      stdout.resume();
    },
  });
  const stop = (): Promise<void> => supervised.stop(stopMs);
  t.after(stop);
  await supervised.ready;
  return { pid: () => supervised.pid() ?? 0, stop };
}

/** What a worker thread can do at its next commit. */
export const threadFaults = [
  'exit before the commit',
  'exit after the commit',
  'loop for ever',
  'terminate',
] as const;
export type ThreadFault = (typeof threadFaults)[number] | 'kill after the commit';

/** Writes the order atomically, for `sabotage.ts` in the process. */
export function orderThreads(folder: string, pid: number, fault: ThreadFault): void {
  const file = join(folder, `${pid}`);
  writeFileSync(`${file}.tmp`, fault);
  renameSync(`${file}.tmp`, file);
}
