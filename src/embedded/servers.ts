import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.js';
import { type Closers, StartError } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import { type DataDir, type Endpoints, openDataDir, readStoredEndpoints } from './data-dir.js';
import { ensureRedisServer } from './ensure-redis.js';
import { isPortFree, startOnFreePort } from './free-port.js';
import { type ClickhouseExit, startClickhouse } from './start-clickhouse.js';
import { startRedis } from './start-redis.js';
import type { ServerOptions, SupervisedServer } from './supervisor.js';

export type ServerSettings = Pick<Config, 'dataDir' | 'redisUrl' | 'clickhouseUrl'> &
  Pick<Config, 'embeddedRedisPort' | 'embeddedClickhousePort' | 'embeddedRedisFsync'> &
  Partial<Pick<Config, 'clickhouseCluster' | 'embeddedRedisMaxmemory' | 'analystLimits'>>;

export type ClickhouseExitCounts = Record<ClickhouseExit, number>;

export type EndpointsResult = { endpoints: Endpoints } | { problem: string };

const maxSilenceMs = 10_000;
const pollMs = 100;

/**
 * Locks DATA_DIR, starts servers for missing URLs and writes all addresses to endpoints.json.
 * @throws StartError if the folder or a configured port is taken, or redis-server is missing
 */
export async function startEmbeddedServers(
  settings: ServerSettings,
  logger: Logger,
  closers: Closers,
  exitCounts: ClickhouseExitCounts = { died: 0, analyst_query: 0 },
): Promise<Endpoints> {
  const dir = await openDataDir(settings.dataDir);
  closers.add('data folder', dir.release);
  const context = { settings, dir, logger, closers };
  const [redisUrl, clickhouse] = await Promise.all([
    settings.redisUrl ?? startRedisServer(context),
    settings.clickhouseUrl === null
      ? startClickhouseServer(context, exitCounts)
      : { clickhouseUrl: settings.clickhouseUrl, analystUrl: null },
  ]);
  const { clickhouseCluster } = settings;
  const endpoints = { redisUrl, ...clickhouse, ...(clickhouseCluster && { clickhouseCluster }) };
  dir.writeEndpoints(endpoints);
  closers.add('endpoints.json', dir.removeEndpoints);
  return endpoints;
}

/**
 * For ROLE=api or pipeline.
 * @throws StartError if a URL is missing, or a server does not respond
 */
export async function resolveEndpoints(settings: ServerSettings): Promise<Endpoints> {
  const found = await findRunningServers(settings);
  if ('endpoints' in found) return found.endpoints;
  throw new StartError(`${found.problem}; set REDIS_URL and CLICKHOUSE_URL, or start the service first`);
}

export async function connectOrStart(
  settings: ServerSettings,
  logger: Logger,
  closers: Closers,
): Promise<Endpoints> {
  const found = await findRunningServers(settings);
  return 'endpoints' in found ? found.endpoints : startEmbeddedServers(settings, logger, closers);
}

async function findRunningServers(settings: ServerSettings): Promise<EndpointsResult> {
  const { redisUrl, clickhouseUrl, clickhouseCluster } = settings;
  const cluster = clickhouseCluster ? { clickhouseCluster } : {};
  const configured = clickhouseUrl === null ? null : { clickhouseUrl, ...cluster, analystUrl: null };
  if (redisUrl !== null && configured !== null) return { endpoints: { redisUrl, ...configured } };
  const found = await probeEndpoints(settings.dataDir);
  if ('problem' in found) return found;
  const { redisUrl: published, ...clickhouse } = found.endpoints;
  return { endpoints: { redisUrl: redisUrl ?? published, ...(configured ?? clickhouse) } };
}

/** Retries, because a server or this process may only be suspended. */
export async function probeEndpoints(dataDir: string, timeoutMs = maxSilenceMs): Promise<EndpointsResult> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    // Before the probes: if this process was suspended during them, they are repeated once.
    const isLast = performance.now() >= deadline;
    const endpoints = readStoredEndpoints(dataDir);
    if (endpoints === null)
      return { problem: `no service is running on ${dataDir} (endpoints.json is missing)` };
    const { probeClickhouse, probeRedis } = await import('./probe.js');
    const [redis, clickhouse] = await Promise.all([
      probeRedis(endpoints.redisUrl),
      probeClickhouse(endpoints.clickhouseUrl),
    ]);
    // A server that refuses connections has ended.
    const failure = redis !== null && (redis.isRefused || !clickhouse?.isRefused) ? redis : clickhouse;
    if (failure === null) return { endpoints };
    const server = failure === redis ? 'Redis' : 'ClickHouse';
    if (failure.isRefused || isLast)
      return { problem: `the ${server} of ${dataDir} does not respond (${failure.reason})` };
    await sleep(pollMs);
  }
}

interface ServerContext {
  readonly settings: ServerSettings;
  readonly dir: DataDir;
  readonly logger: Logger;
  readonly closers: Closers;
}

async function startRedisServer(context: ServerContext): Promise<string> {
  const { settings, dir, logger, closers } = context;
  const abort = new AbortController();
  closers.add('installation of redis-server', () => abort.abort());
  await ensureRedisServer((line) => logger.info(line), abort.signal);
  const { embeddedRedisFsync: fsync, embeddedRedisMaxmemory: maxmemory } = settings;
  const server = await startServer(context, 'Redis', settings.embeddedRedisPort, (options) =>
    startRedis({ ...options, password: dir.secrets.redis, fsync, maxmemory }),
  );
  return server.url;
}

async function startClickhouseServer(context: ServerContext, exitCounts: ClickhouseExitCounts) {
  const { clickhouse: password, analyst: analystPassword } = context.dir.secrets;
  const onExit = (reason: ClickhouseExit): void => {
    exitCounts[reason] += 1;
  };
  const { analystLimits } = context.settings;
  const { clickhouseUrl, analystUrl } = await startServer(
    context,
    'ClickHouse',
    context.settings.embeddedClickhousePort,
    (options) => startClickhouse({ ...options, password, analystPassword, analystLimits, onExit }),
  );
  return { clickhouseUrl, analystUrl };
}

/** @param configuredPort 0: any free one */
async function startServer<Server extends SupervisedServer>(
  context: ServerContext,
  name: 'Redis' | 'ClickHouse',
  configuredPort: number,
  start: (options: ServerOptions) => Server,
): Promise<Server> {
  const { dir, logger, closers } = context;
  const lowerName = name.toLowerCase();
  const startOn = async (port: number): Promise<Server> => {
    const onSpawn = (pid: number): void => {
      try {
        dir.recordServer(lowerName, pid);
      } catch (error) {
        // A dead server must restart even on a full disk.
        const facts = { err: error, server: lowerName, child: pid };
        logger.warn(
          facts,
          'the process id of a server could not be stored; if this process is killed, the next start will not wait for that server',
        );
      }
    };
    const server = start({ dir: join(dir.path, lowerName), port, logger, onSpawn });
    closers.add(`embedded ${name}`, server.stop);
    await server.ready;
    logger.info({ port, child: server.pid() }, `embedded ${name} is ready`);
    return server;
  };
  if (configuredPort === 0) return startOnFreePort(startOn);
  if (await isPortFree(configuredPort)) return startOn(configuredPort);
  throw new StartError(
    `EMBEDDED_${name.toUpperCase()}_PORT: port ${configuredPort} on 127.0.0.1 is in use; choose another port, or 0 for any free port`,
  );
}
