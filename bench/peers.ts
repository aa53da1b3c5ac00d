/** Peers: other servers for the same answers, started on demand. */
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { startClickhouse } from '../src/embedded/clickhouse.js';
import { freePort } from '../src/embedded/free-port.js';
import { startRedis } from '../src/embedded/redis.js';
import type { Closers } from '../src/lifecycle.js';
import { createLogger } from '../src/telemetry.js';
import { startProcess, stopProcess } from './processes.js';
import { here, type Target } from './targets.js';
import { notesOption, readNotes, type ThreadNote } from './threads.js';
import { untilDone } from './wait.js';

export type PeerName =
  | 'echo'
  /** Validates, reads and writes one hash; no event ids, no outbox. */
  | 'fastify'
  /** Same promises for an answer: atomic state, event id and outbox; no lost update; repeated ids get the first response. */
  | 'fastify-outbox'
  | 'fastify-bullmq'
  | 'task-per-request';

/** Argument of a peer's program, as JSON. */
export interface PeerSettings {
  readonly port: number;
  readonly keys: readonly string[];
  /** Empty if the peer stores nothing. */
  readonly redisUrl: string;
  /** Empty if the peer writes no rows. */
  readonly clickhouseUrl: string;
}

export interface Peer extends Target {
  /** Folder of the notes of its threads. */
  readonly notes: string;
  /** Empty if it has none. */
  readonly redisUrl: string;
  /** Resolves when no work of earlier requests is left; null if a response means that all is done. */
  readonly settled: (() => Promise<void>) | null;
}

const logger = createLogger('warn', 'bench');

export interface PeersOptions {
  readonly folder: string;
  readonly keys: readonly string[];
  readonly profile: boolean;
  readonly closers: Closers;
}

/** Each peer has its own Redis, configured like the service's. @returns starts a peer once */
export function createPeers({ keys, ...options }: PeersOptions): (name: PeerName) => Promise<Peer> {
  const started = new Map<PeerName, Promise<Peer>>();
  const launch = async (name: PeerName): Promise<Peer> => {
    const place = { ...options, name, folder: join(options.folder, name) };
    const settings = { port: await freePort(), keys, redisUrl: '', clickhouseUrl: '' };
    if (name === 'echo') return startPeer(place, settings, {});
    const { url: redisUrl, pid } = await startPeerRedis(join(place.folder, 'redis'), options.closers);
    const withRedis = { ...settings, redisUrl };
    if (name !== 'fastify-bullmq') return startPeer(place, withRedis, { redis: pid });
    return startWithQueue(place, withRedis, pid);
  };
  return (name) => {
    const peer = started.get(name) ?? launch(name);
    started.set(name, peer);
    return peer;
  };
}

interface Place extends Omit<PeersOptions, 'keys'> {
  readonly name: PeerName;
}

async function startPeer(
  { name, folder, profile, closers }: Place,
  settings: PeerSettings,
  pids: Readonly<Record<string, number>>,
): Promise<Peer> {
  const notes = join(folder, 'threads');
  await startProgram(name, settings, closers, { NODE_OPTIONS: notesOption(notes, profile) });
  const threads = (): ThreadNote[] => readNotes(notes);
  const { port, redisUrl } = settings;
  return { name, port, redisUrl, notes, pids, threads, settled: null };
}

async function startProgram(
  name: string,
  settings: PeerSettings,
  closers: Closers,
  environment: NodeJS.ProcessEnv = {},
): Promise<number> {
  const args = [here(`./peers/${name}.js`), JSON.stringify(settings)];
  const child = await startProcess(args, environment);
  closers.add(name, () => stopProcess(child));
  return child.pid as number;
}

async function startWithQueue(place: Place, withRedis: PeerSettings, redis: number): Promise<Peer> {
  const { folder, closers } = place;
  const clickhouse = await startPeerClickhouse(join(folder, 'clickhouse'), closers);
  const settings = { ...withRedis, clickhouseUrl: clickhouse.url };
  const pipeline = await startProgram('bullmq-worker', settings, closers);
  const others = { redis, pipeline, clickhouse: clickhouse.pid };
  const peer = await startPeer(place, settings, others);
  const connection = new Redis(settings.redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue('answers', { connection });
  closers.add('queue of a peer', async () => {
    await queue.close();
    connection.disconnect();
  });
  const jobsLeft = async (): Promise<string | null> => {
    const jobs = await queue.getJobCountByTypes('waiting', 'active', 'delayed');
    return jobs === 0 ? null : `fastify-bullmq did not finish ${jobs} jobs`;
  };
  return { ...peer, settled: () => untilDone(jobsLeft) };
}

async function startPeerRedis(dir: string, closers: Closers) {
  const server = startRedis({ dir, port: await freePort(), password: 'peers', fsync: 'everysec', logger });
  closers.add('Redis of the peers', server.stop);
  await server.ready;
  return { url: server.url, pid: server.pid() as number };
}

async function startPeerClickhouse(dir: string, closers: Closers) {
  const passwords = { password: 'peers', analystPassword: 'analyst' };
  const server = startClickhouse({ dir, port: await freePort(), ...passwords, logger });
  closers.add('ClickHouse of the peers', server.stop);
  await server.ready;
  return { url: server.clickhouseUrl, pid: server.pid() as number };
}
