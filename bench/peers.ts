/** The peers: other servers for the same answers, started when a scenario asks for them. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { startClickhouse } from '../src/embedded/clickhouse.js';
import { freePort } from '../src/embedded/ports.js';
import { startRedis } from '../src/embedded/redis.js';
import { type Closers, StartError } from '../src/lifecycle.js';
import { createLogger } from '../src/telemetry.js';
import { startProcess, stopProcess } from './processes.js';
import { here, type Target } from './targets.js';

export type PeerName = 'echo' | 'fastify' | 'fastify-bullmq' | 'task-per-request';

/** What a peer's program is told, as JSON in its only argument. */
export interface PeerSettings {
  readonly port: number;
  /** Keys that may write. */
  readonly keys: readonly string[];
  /** Empty for a peer that keeps nothing. */
  readonly redisUrl: string;
  /** Empty for a peer that writes no rows. */
  readonly clickhouseUrl: string;
}

export interface Peer extends Target {
  /** Resolves when everything that requests have set off is done; null where nothing outlives a request. */
  readonly settled: (() => Promise<void>) | null;
}

export interface Peers {
  start(name: PeerName): Promise<Peer>;
}

const logger = createLogger('warn', 'bench');

/** @param folder of the servers' files; peers share a Redis, which is set up like the service's own */
export function createPeers(folder: string, keys: readonly string[], closers: Closers): Peers {
  const started = new Map<PeerName, Promise<Peer>>();
  let sharedRedis: Promise<ServerProcess> | undefined;
  const redis = (): Promise<ServerProcess> => {
    sharedRedis ??= startPeerRedis(join(folder, 'redis'), closers);
    return sharedRedis;
  };
  const launch = async (name: PeerName): Promise<Peer> => {
    const settings = { port: await freePort(), keys, redisUrl: '', clickhouseUrl: '' };
    if (name === 'echo') return startPeer(name, settings, {}, closers);
    const { url: redisUrl, pid } = await redis();
    const withRedis = { ...settings, redisUrl };
    if (name !== 'fastify-bullmq') return startPeer(name, withRedis, { redis: pid }, closers);
    return startWithQueue(join(folder, 'clickhouse'), withRedis, pid, closers);
  };
  return {
    start: (name) => {
      const peer = started.get(name) ?? launch(name);
      started.set(name, peer);
      return peer;
    },
  };
}

async function startPeer(
  name: PeerName,
  settings: PeerSettings,
  others: Readonly<Record<string, number>>,
  closers: Closers,
): Promise<Peer> {
  const server = await startProgram(name, settings, closers);
  return { name, port: settings.port, key: '', pids: { server, ...others }, settled: null };
}

async function startProgram(name: string, settings: PeerSettings, closers: Closers): Promise<number> {
  const { child } = await startProcess([here(`./peers/${name}.js`), JSON.stringify(settings)], {});
  closers.add(name, () => stopProcess(child));
  return child.pid as number;
}

async function startWithQueue(
  folder: string,
  withRedis: PeerSettings,
  redis: number,
  closers: Closers,
): Promise<Peer> {
  const clickhouse = await startPeerClickhouse(folder, closers);
  const settings = { ...withRedis, clickhouseUrl: clickhouse.url };
  const pipeline = await startProgram('bullmq-worker', settings, closers);
  const others = { redis, pipeline, clickhouse: clickhouse.pid };
  const peer = await startPeer('fastify-bullmq', settings, others, closers);
  const connection = new Redis(settings.redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue('answers', { connection });
  closers.add('queue of a peer', async () => {
    await queue.close();
    connection.disconnect();
  });
  return { ...peer, settled: () => untilEmpty(queue) };
}

const settleLimitMs = 120_000;
const pollMs = 50;

async function untilEmpty(queue: Queue): Promise<void> {
  const deadline = performance.now() + settleLimitMs;
  while ((await queue.getJobCountByTypes('waiting', 'active', 'delayed')) > 0) {
    if (performance.now() > deadline) throw new StartError('fastify-bullmq does not finish its jobs');
    await sleep(pollMs);
  }
}

interface ServerProcess {
  readonly url: string;
  readonly pid: number;
}

async function startPeerRedis(dir: string, closers: Closers): Promise<ServerProcess> {
  const port = await freePort();
  const server = startRedis({ dir, port, password: 'peers', fsync: 'everysec', logger });
  closers.add('Redis of the peers', server.stop);
  await server.ready;
  return { url: server.url, pid: server.pid() as number };
}

async function startPeerClickhouse(dir: string, closers: Closers): Promise<ServerProcess> {
  const port = await freePort();
  const passwords = { password: 'peers', analystPassword: 'analyst' };
  const server = startClickhouse({ dir, port, ...passwords, logger });
  closers.add('ClickHouse of the peers', server.stop);
  await server.ready;
  return { url: server.clickhouseUrl, pid: server.pid() as number };
}
