import { join } from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { findFreePort } from '../../src/embedded/free-port.js';
import type { Closers } from '../../src/lifecycle.js';
import { startProcess, stopProcess } from './processes.js';
import { startMeasuredServers } from './service.js';
import { resolveBenchPath, type Target } from './targets.js';
import { buildNotesOption, readNotes, type ThreadNote } from './threads.js';
import { waitUntilDone } from './wait.js';

export type PeerName =
  | 'echo'
  /** One hash; no event ids, no outbox. */
  | 'fastify'
  /**
   * The service's promises: atomic state, event id and outbox; no lost update; repeated ids get the first
   * response.
   */
  | 'fastify-outbox'
  | 'fastify-bullmq'
  | 'task-per-request';

/** JSON argument of a peer. */
export interface PeerSettings {
  readonly port: number;
  readonly keys: readonly string[];
  /** Empty: the peer stores nothing. */
  readonly redisUrl: string;
  /** Empty: the peer writes no rows. */
  readonly clickhouseUrl: string;
}

export interface Peer extends Target {
  readonly notesFolder: string;
  readonly redisUrl: string;
  /** Resolves when all work of earlier requests is done. Null if a response already means that. */
  readonly waitUntilSettled: (() => Promise<void>) | null;
}

export interface PeersOptions {
  readonly folder: string;
  readonly keys: readonly string[];
  readonly profile: boolean;
  readonly closers: Closers;
}

/** Each peer starts once. Peers that store answers get a separate Redis, configured like the service's. */
export function createPeers({ keys, ...options }: PeersOptions): (name: PeerName) => Promise<Peer> {
  const started = new Map<PeerName, Promise<Peer>>();
  const launch = async (name: PeerName): Promise<Peer> => {
    const place = { ...options, name, folder: join(options.folder, name) };
    const settings = { port: await findFreePort(), keys, redisUrl: '', clickhouseUrl: '' };
    if (name === 'echo') return startPeer(place, settings, {});
    const hasQueue = name === 'fastify-bullmq';
    const { endpoints, pids } = await startMeasuredServers(
      place.folder,
      options.closers,
      hasQueue ? null : '',
    );
    const { redisUrl, clickhouseUrl } = endpoints;
    if (!hasQueue) return startPeer(place, { ...settings, redisUrl }, pids);
    return startQueuePeer(place, { ...settings, redisUrl, clickhouseUrl }, pids);
  };
  return (name) => {
    const peer = started.get(name) ?? launch(name);
    started.set(name, peer);
    return peer;
  };
}

interface PeerLocation extends Omit<PeersOptions, 'keys'> {
  readonly name: PeerName;
}

async function startPeer(
  { name, folder, profile, closers }: PeerLocation,
  settings: PeerSettings,
  pids: Target['pids'],
): Promise<Peer> {
  const notesFolder = join(folder, 'threads');
  await startProgram(name, settings, closers, { NODE_OPTIONS: buildNotesOption(notesFolder, profile) });
  const threads = (): ThreadNote[] => readNotes(notesFolder);
  const { port, redisUrl } = settings;
  return { name, port, redisUrl, notesFolder, pids, threads, waitUntilSettled: null };
}

async function startProgram(
  name: string,
  settings: PeerSettings,
  closers: Closers,
  environment: NodeJS.ProcessEnv = {},
): Promise<number> {
  const args = [resolveBenchPath(`./peers/${name}.js`), JSON.stringify(settings)];
  const child = await startProcess(args, environment);
  closers.add(name, () => stopProcess(child));
  return child.pid as number;
}

async function startQueuePeer(
  place: PeerLocation,
  settings: PeerSettings,
  servers: Target['pids'],
): Promise<Peer> {
  const { closers } = place;
  const pipeline = await startProgram('bullmq-worker', settings, closers);
  const peer = await startPeer(place, settings, { ...servers, pipeline });
  const connection = new Redis(settings.redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue('answers', { connection });
  closers.add('queue of a peer', async () => {
    await queue.close();
    connection.disconnect();
  });
  const jobsLeft = async (): Promise<string | null> => {
    const jobs = await queue.getJobCountByTypes('waiting', 'active', 'delayed');
    return jobs === 0 ? null : `fastify-bullmq has ${jobs} unfinished jobs`;
  };
  return { ...peer, waitUntilSettled: () => waitUntilDone(jobsLeft) };
}
