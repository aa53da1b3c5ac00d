import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.js';
import { type Closers, StartError } from '../lifecycle.js';
import type { Logger } from '../logger.js';
import { type ClickhouseEnd, startClickhouse } from './clickhouse.js';
import { type DataDir, type Endpoints, openDataDir, readStoredEndpoints } from './data-dir.js';
import { isFree, startOnFreePort } from './free-port.js';
import { ensureRedisServer } from './install-redis.js';
import { startRedis } from './redis.js';
import type { ServerOptions, Supervised } from './supervisor.js';

export type ServerSettings = Pick<Config, 'dataDir' | 'redisUrl' | 'clickhouseUrl'> &
  Pick<Config, 'embeddedRedisPort' | 'embeddedClickhousePort' | 'embeddedRedisFsync'> &
  Partial<Pick<Config, 'clickhouseCluster' | 'embeddedRedisMaxmemory' | 'analystLimits'>>;

export type ClickhouseEnds = Record<ClickhouseEnd, number>;

export type FoundEndpoints = { endpoints: Endpoints } | { problem: string };

const maxStandstillMs = 10_000;
const pollMs = 100;

/**
 * Locks DATA_DIR, starts servers for missing URLs and writes all addresses to endpoints.json.
 * @throws StartError if the folder or a configured port is taken, or redis-server is missing
 */
export async function startEmbedded(
  settings: ServerSettings,
  logger: Logger,
  closers: Closers,
  ends: ClickhouseEnds = { died: 0, analyst_query: 0 },
): Promise<Endpoints> {
  const dir = await openDataDir(settings.dataDir);
  closers.add('data folder', dir.release);
  const host = { settings, dir, logger, closers };
  const [redisUrl, clickhouse] = await Promise.all([
    settings.redisUrl ?? runRedis(host),
    settings.clickhouseUrl === null
      ? runClickhouse(host, ends)
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
  const found = await runningServers(settings);
  if ('endpoints' in found) return found.endpoints;
  throw new StartError(`${found.problem}; set REDIS_URL and CLICKHOUSE_URL, or start the service first`);
}

export async function joinOrStart(
  settings: ServerSettings,
  logger: Logger,
  closers: Closers,
): Promise<Endpoints> {
  const found = await runningServers(settings);
  return 'endpoints' in found ? found.endpoints : startEmbedded(settings, logger, closers);
}

async function runningServers(settings: ServerSettings): Promise<FoundEndpoints> {
  const { redisUrl, clickhouseUrl, clickhouseCluster } = settings;
  const cluster = clickhouseCluster ? { clickhouseCluster } : {};
  const given = clickhouseUrl === null ? null : { clickhouseUrl, ...cluster, analystUrl: null };
  if (redisUrl !== null && given !== null) return { endpoints: { redisUrl, ...given } };
  const found = await findEndpoints(settings.dataDir);
  if ('problem' in found) return found;
  const { redisUrl: published, ...clickhouse } = found.endpoints;
  return { endpoints: { redisUrl: redisUrl ?? published, ...(given ?? clickhouse) } };
}

/** Retries, because a server or this process may only be suspended. */
export async function findEndpoints(dataDir: string, limitMs = maxStandstillMs): Promise<FoundEndpoints> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    // After a suspension of this process, the probes are repeated once.
    const isLast = performance.now() >= deadline;
    const endpoints = readStoredEndpoints(dataDir);
    if (endpoints === null) return { problem: `no service runs on ${dataDir} (it has no endpoints.json)` };
    const { probeClickhouse, probeRedis } = await import('./probe.js');
    const [redis, clickhouse] = await Promise.all([
      probeRedis(endpoints.redisUrl),
      probeClickhouse(endpoints.clickhouseUrl),
    ]);
    // A server that refuses connections has ended.
    const silence = redis !== null && (redis.refused || !clickhouse?.refused) ? redis : clickhouse;
    if (silence === null) return { endpoints };
    const server = silence === redis ? 'Redis' : 'ClickHouse';
    if (silence.refused || isLast)
      return { problem: `the ${server} of ${dataDir} does not answer (${silence.reason})` };
    await sleep(pollMs);
  }
}

interface Host {
  readonly settings: ServerSettings;
  readonly dir: DataDir;
  readonly logger: Logger;
  readonly closers: Closers;
}

async function runRedis(host: Host): Promise<string> {
  const { settings, dir, logger, closers } = host;
  const abort = new AbortController();
  closers.add('installation of redis-server', () => abort.abort());
  await ensureRedisServer((line) => logger.info(line), abort.signal);
  const { embeddedRedisFsync: fsync, embeddedRedisMaxmemory: maxmemory } = settings;
  const server = await run(host, 'Redis', settings.embeddedRedisPort, (options) =>
    startRedis({ ...options, password: dir.secrets.redis, fsync, maxmemory }),
  );
  return server.url;
}

async function runClickhouse(host: Host, ends: ClickhouseEnds) {
  const { clickhouse: password, analyst: analystPassword } = host.dir.secrets;
  const onEnd = (reason: ClickhouseEnd): void => {
    ends[reason] += 1;
  };
  const { analystLimits } = host.settings;
  const { clickhouseUrl, analystUrl } = await run(
    host,
    'ClickHouse',
    host.settings.embeddedClickhousePort,
    (options) => startClickhouse({ ...options, password, analystPassword, analystLimits, onEnd }),
  );
  return { clickhouseUrl, analystUrl };
}

/** @param configuredPort 0: any free one */
async function run<Server extends Supervised>(
  host: Host,
  name: 'Redis' | 'ClickHouse',
  pinned: number,
  start: (options: ServerOptions) => Server,
): Promise<Server> {
  const { dir, logger, closers } = host;
  const lowerName = name.toLowerCase();
  const startOn = async (port: number): Promise<Server> => {
    const onSpawn = (pid: number): void => {
      try {
        dir.recordServer(lowerName, pid);
      } catch (error) {
        // A dead server must restart even on a full disk.
        const facts = { err: error, name: lowerName, pid };
        logger.warn(facts, 'a server could not be noted: a start after a kill does not wait for it');
      }
    };
    const server = start({ dir: join(dir.path, lowerName), port, logger, onSpawn });
    closers.add(`embedded ${name}`, server.stop);
    await server.ready;
    logger.info({ port, pid: server.pid() }, `embedded ${name} is ready`);
    return server;
  };
  if (pinned === 0) return startOnFreePort(startOn);
  if (await isFree(pinned)) return startOn(pinned);
  throw new StartError(
    `EMBEDDED_${name.toUpperCase()}_PORT: port ${pinned} on 127.0.0.1 is taken; choose another one, or 0 for any free port`,
  );
}
