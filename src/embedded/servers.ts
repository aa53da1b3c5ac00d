import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Closers, StartError } from '../lifecycle.js';
import type { Logger } from '../telemetry.js';
import { type ClickhouseEnd, startClickhouse } from './clickhouse.js';
import { type DataDir, type Endpoints, openDataDir, readStoredEndpoints } from './data-dir.js';
import { ensureRedisServer } from './install-redis.js';
import { isFree, startOnFreePort } from './ports.js';
import { startRedis } from './redis.js';

/** The part of the configuration that concerns the servers. */
export type ServerSettings = {
  dataDir: string;
  redisUrl: string | null;
  clickhouseUrl: string | null;
  clickhouseCluster?: string | null | undefined;
  embeddedRedisPort: number;
  embeddedClickhousePort: number;
  embeddedRedisFsync: 'everysec' | 'always';
  embeddedRedisMaxmemory?: number | undefined;
};

/** How often the embedded ClickHouse ended without being asked to, and was started again. */
export type ClickhouseEnds = Record<ClickhouseEnd, number>;

/** Living endpoints, or why there are none. */
export type FoundEndpoints = { endpoints: Endpoints } | { problem: string };

/** A server that stands still this long counts as gone. */
const STANDSTILL_MS = 10_000;
const POLL_MS = 100;

/**
 * Takes DATA_DIR, starts the servers for which no URL is set and publishes all addresses in endpoints.json.
 * The closers stop them (ClickHouse, then Redis) and free the folder.
 *
 * @param ends counted on
 * @throws StartError when the folder or a pinned port is taken, or redis-server is missing
 */
export async function startEmbedded(
  settings: ServerSettings,
  logger: Logger,
  closers: Closers,
  ends: ClickhouseEnds = { died: 0, analyst_query: 0 },
): Promise<Endpoints> {
  const dir = await openDataDir(settings.dataDir);
  closers.add('data folder', dir.release);
  const [redisUrl, clickhouse] = await Promise.all([
    settings.redisUrl ?? runRedis(settings, dir, logger, closers),
    settings.clickhouseUrl === null
      ? runClickhouse(settings, dir, logger, closers, ends)
      : { clickhouseUrl: settings.clickhouseUrl, analystUrl: null },
  ]);
  const endpoints = { redisUrl, ...clickhouse, ...clusterOf(settings) };
  dir.writeEndpoints(endpoints);
  closers.add('endpoints.json', dir.removeEndpoints);
  return endpoints;
}

/**
 * The servers of a running service, for a process that starts none (ROLE=api or pipeline).
 *
 * @throws StartError when a URL is neither set nor published, or nobody answers there
 */
export async function resolveEndpoints(settings: ServerSettings): Promise<Endpoints> {
  const { redisUrl, clickhouseUrl } = settings;
  if (redisUrl !== null && clickhouseUrl !== null)
    return { redisUrl, clickhouseUrl, ...clusterOf(settings), analystUrl: null };
  const found = await findEndpoints(settings.dataDir);
  if ('problem' in found) {
    throw new StartError(`${found.problem}; set REDIS_URL and CLICKHOUSE_URL, or start the service first`);
  }
  return {
    redisUrl: redisUrl ?? found.endpoints.redisUrl,
    clickhouseUrl: clickhouseUrl ?? found.endpoints.clickhouseUrl,
    ...clusterOf(clickhouseUrl === null ? found.endpoints : settings),
    analystUrl: clickhouseUrl === null ? found.endpoints.analystUrl : null,
  };
}

/** Only where there is one. */
const clusterOf = ({ clickhouseCluster }: Pick<Endpoints, 'clickhouseCluster'>) =>
  clickhouseCluster ? { clickhouseCluster } : {};

/** The running service's servers, or its own where none runs: for commands beside or without the service. */
export async function joinOrStart(
  settings: ServerSettings,
  logger: Logger,
  closers: Closers,
): Promise<Endpoints> {
  const { redisUrl, clickhouseUrl } = settings;
  const bothSet = redisUrl !== null && clickhouseUrl !== null;
  const running = bothSet || 'endpoints' in (await findEndpoints(settings.dataDir));
  return running ? resolveEndpoints(settings) : startEmbedded(settings, logger, closers);
}

/**
 * Reads endpoints.json and asks both servers whether they are there, again while one of them, or this process,
 * may only stand still.
 *
 * @param limitMs how long to ask again
 */
export async function findEndpoints(dataDir: string, limitMs = STANDSTILL_MS): Promise<FoundEndpoints> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    // Looked at before asking: after a standstill of this process they are asked once more.
    const isLast = performance.now() >= deadline;
    const asked = await askServers(dataDir);
    if ('endpoints' in asked || asked.isOver || isLast) return asked;
    await sleep(POLL_MS);
  }
}

/** `isOver`: asking again is no use. */
async function askServers(
  dataDir: string,
): Promise<{ endpoints: Endpoints } | { problem: string; isOver: boolean }> {
  const endpoints = readStoredEndpoints(dataDir);
  if (endpoints === null)
    return { problem: `no service runs on ${dataDir} (it has no endpoints.json)`, isOver: true };
  const { probeClickhouse, probeRedis } = await import('./probe.js');
  const [redis, clickhouse] = await Promise.all([
    probeRedis(endpoints.redisUrl),
    probeClickhouse(endpoints.clickhouseUrl),
  ]);
  const silent = [
    ...(redis === null ? [] : [{ server: 'Redis', ...redis }]),
    ...(clickhouse === null ? [] : [{ server: 'ClickHouse', ...clickhouse }]),
  ];
  const worst = silent.find(({ refused }) => refused) ?? silent[0];
  if (worst === undefined) return { endpoints };
  const { server, reason, refused } = worst;
  return { problem: `the ${server} of ${dataDir} does not answer (${reason})`, isOver: refused };
}

async function runRedis(
  settings: ServerSettings,
  dir: DataDir,
  logger: Logger,
  closers: Closers,
): Promise<string> {
  const abort = new AbortController();
  closers.add('installation of redis-server', () => abort.abort());
  await ensureRedisServer((line) => logger.info(line), abort.signal);
  return startOnPort('EMBEDDED_REDIS_PORT', settings.embeddedRedisPort, async (port) => {
    const server = startRedis({
      dir: join(dir.path, 'redis'),
      port,
      password: dir.secrets.redis,
      fsync: settings.embeddedRedisFsync,
      maxmemory: settings.embeddedRedisMaxmemory,
      logger,
      onSpawn: (pid) => noteServer(dir, 'redis', pid, logger),
    });
    closers.add('embedded Redis', server.stop);
    await server.ready;
    logger.info({ port, pid: server.pid() }, 'embedded Redis is ready');
    return server.url;
  });
}

async function runClickhouse(
  settings: ServerSettings,
  dir: DataDir,
  logger: Logger,
  closers: Closers,
  ends: ClickhouseEnds,
): Promise<{ clickhouseUrl: string; analystUrl: string }> {
  return startOnPort('EMBEDDED_CLICKHOUSE_PORT', settings.embeddedClickhousePort, async (port) => {
    const server = startClickhouse({
      dir: join(dir.path, 'clickhouse'),
      port,
      password: dir.secrets.clickhouse,
      analystPassword: dir.secrets.analyst,
      logger,
      onEnd: (reason) => {
        ends[reason] += 1;
      },
      onSpawn: (pid) => noteServer(dir, 'clickhouse', pid, logger),
    });
    closers.add('embedded ClickHouse', server.stop);
    await server.ready;
    logger.info({ port, pid: server.pid() }, 'embedded ClickHouse is ready');
    return { clickhouseUrl: server.clickhouseUrl, analystUrl: server.analystUrl };
  });
}

/** On a full disk a server that died has to start again all the same. */
function noteServer(dir: DataDir, name: string, pid: number, logger: Logger): void {
  try {
    dir.recordServer(name, pid);
  } catch (error) {
    logger.warn(
      { err: error, name, pid },
      'a server could not be noted: a start after a kill does not wait for it',
    );
  }
}

async function startOnPort<Server>(
  name: string,
  pinned: number,
  start: (port: number) => Promise<Server>,
): Promise<Server> {
  if (pinned === 0) return startOnFreePort(start);
  if (await isFree(pinned)) return start(pinned);
  throw new StartError(
    `${name}: port ${pinned} on 127.0.0.1 is taken; choose another one, or 0 for any free port`,
  );
}
