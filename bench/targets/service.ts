/** Embedded servers and processes with ROLE=api and ROLE=pipeline, started as a user starts them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClickHouseClient } from '@clickhouse/client';
import { createChildEnvironment } from '../../src/config.js';
import { shardCount } from '../../src/contracts/outbox/job-data.js';
import { findFreePort } from '../../src/embedded/free-port.js';
import { startEmbeddedServers } from '../../src/embedded/servers.js';
import { connectQueue } from '../../src/jobs/consumer.js';
import { enqueueShard, openDrainQueue } from '../../src/jobs/drain-jobs.js';
import type { Closers } from '../../src/lifecycle.js';
import { createLogger } from '../../src/logger.js';
import { createOutbox, type PipelineFacts } from '../../src/store/outbox/outbox.js';
import { connectRedis, type RedisClient, waitUntilReady } from '../../src/store/redis/connection/client.js';
import { defaultPartitions } from '../../src/store/redis/server/deployment.js';
import { connectWarehouse } from '../../src/warehouse/clickhouse/client.js';
import { startProcess, stopProcess } from './processes.js';
import { resolveBenchPath, type Target } from './targets.js';
import { buildNotesOption, readNotes } from './threads.js';
import { waitUntilDone } from './wait.js';

export interface Service extends Target {
  readonly notesFolder: string;
  readonly redis: RedisClient;
  readonly clickhouse: ClickHouseClient;
  readonly analystUrl: string;
  readonly partitions: number;
  facts(): Promise<PipelineFacts>;
  /** @throws StartError after the time limit */
  waitUntilDrained(): Promise<void>;
  /** Starts the drain immediately. @throws StartError after the time limit */
  drainImmediately(): Promise<void>;
}

export interface ServiceOptions {
  /** Must be empty. */
  readonly dataDir: string;
  /** Each has a key of the same name. */
  readonly tenants: readonly string[];
  readonly profile: boolean;
}

const logger = createLogger('warn', 'bench');
const redisTimeoutMs = 10_000;
/** High enough that requests never reach it. */
const quota = 1_000_000_000;

/** Isolates the measured service from the user's settings. */
const clearedSettings = {
  REDIS_URL: '',
  REDIS_URL_FILE: '',
  CLICKHOUSE_URL: '',
  CLICKHOUSE_URL_FILE: '',
  API_KEYS_FILE: '',
  SKILLS_FILE: '',
  HOST: '',
};

export async function startSplitService(options: ServiceOptions, closers: Closers): Promise<Service> {
  const { dataDir } = options;
  const { endpoints, pids } = await startMeasuredServers(dataDir, closers);
  const pipeline = await startRole({ ROLE: 'pipeline', PORT: '' }, options, closers);
  const port = await findFreePort();
  await startRole({ ROLE: 'api', PORT: `${port}` }, options, closers);
  const redis = connectRedis(endpoints.redisUrl);
  closers.add('Redis connection', () => redis.disconnect());
  await waitUntilReady(redis, redisTimeoutMs);
  const clickhouse = connectWarehouse(endpoints.clickhouseUrl);
  closers.add('ClickHouse connection', () => clickhouse.close());
  const { facts } = createOutbox(redis, defaultPartitions);
  const drainNow = createDrainTrigger(endpoints.redisUrl, closers);
  return {
    name: 'skilltrace',
    port,
    pids: { ...pids, pipeline },
    notesFolder: notesFolder(dataDir),
    threads: () => readNotes(notesFolder(dataDir)),
    redis,
    clickhouse,
    analystUrl: endpoints.analystUrl as string,
    partitions: defaultPartitions,
    facts,
    waitUntilDrained: () => pollUntilDrained(facts),
    drainImmediately: () => pollUntilDrained(facts, drainNow),
  };
}

const notesFolder = (dataDir: string): string => join(dataDir, 'threads');

async function startRole(
  role: { readonly ROLE: 'api' | 'pipeline'; readonly PORT: string },
  { dataDir, tenants, profile }: ServiceOptions,
  closers: Closers,
): Promise<number> {
  const environment = createChildEnvironment({
    ...clearedSettings,
    ...role,
    DATA_DIR: dataDir,
    LOG_LEVEL: 'error',
    API_PROCESSES: '1',
    API_KEYS: tenants.map((tenant) => `${tenant}:${tenant}:${quota}`).join(),
  });
  if (role.ROLE === 'api') environment.NODE_OPTIONS = buildNotesOption(notesFolder(dataDir), profile);
  const child = await startProcess([resolveBenchPath('../../src/setup.mjs'), 'start'], environment);
  closers.add(role.ROLE, () => stopProcess(child));
  return child.pid as number;
}

/**
 * Starts servers on free ports, with a user's settings.
 * @param clickhouseUrl null: starts ClickHouse too; '': none
 */
export async function startMeasuredServers(
  dataDir: string,
  closers: Closers,
  clickhouseUrl: string | null = null,
) {
  const ports = { embeddedRedisPort: 0, embeddedClickhousePort: 0 };
  const settings = {
    dataDir,
    redisUrl: null,
    clickhouseUrl,
    ...ports,
    embeddedRedisFsync: 'everysec',
  } as const;
  const endpoints = await startEmbeddedServers(settings, logger, closers);
  const servers: Record<string, { pid: number }> = JSON.parse(
    readFileSync(join(dataDir, 'servers.json'), 'utf8'),
  );
  const pids = Object.fromEntries(Object.entries(servers).map(([name, { pid }]) => [name, pid]));
  return { endpoints, pids };
}

/** The result starts a drain of every idle shard. */
function createDrainTrigger(redisUrl: string, closers: Closers): () => Promise<void> {
  let closed = false;
  const connection = connectQueue(redisUrl, logger, () => closed);
  const queue = openDrainQueue(connection);
  closers.add('drain queue', async () => {
    closed = true;
    await queue.close();
    connection.disconnect();
  });
  return async () => {
    for (let shard = 0; shard < shardCount; shard++) await enqueueShard(queue, shard);
  };
}

const pollUntilDrained = (
  facts: () => Promise<PipelineFacts>,
  requestDrain: () => Promise<void> = async () => undefined,
): Promise<void> =>
  waitUntilDone(async () => {
    const { outboxLength } = await facts();
    if (outboxLength === 0) return null;
    await requestDrain();
    return `${outboxLength} answers are still in the outbox`;
  });
