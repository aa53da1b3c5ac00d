import { join } from 'node:path';
import { findFreePort } from '../../src/embedded/free-port.js';
import type { Closers } from '../../src/lifecycle.js';
import { startPostgres } from './postgres.js';
import { startProcess, stopProcess } from './processes.js';
import { startMeasuredServers } from './service.js';
import { resolveBenchPath, type Target } from './targets.js';
import { buildNotesOption, readNotes } from './threads.js';

/** Suffix of peers whose commits wait for the disk, unlike the service with its default appendfsync everysec. */
const syncSuffix = '-sync';
type PostgresProgram = 'fastify-postgres' | 'fastify-postgres-function';

export type PeerName =
  | 'echo'
  /** One hash; no event ids, no outbox. */
  | 'fastify'
  /**
   * The service's promises: atomic state, event id and outbox; no lost update; repeated ids get the first
   * response.
   */
  | 'fastify-outbox'
  /** The same promises, with the attempts in a table. */
  | PostgresProgram
  | `${PostgresProgram}${typeof syncSuffix}`;

/** JSON argument of a peer. */
export interface PeerSettings {
  readonly port: number;
  readonly keys: readonly string[];
  /** Empty: the peer does not use it. */
  readonly redisUrl: string;
  readonly postgresUrl: string;
}

export interface Peer extends Target, Pick<PeerSettings, 'redisUrl' | 'postgresUrl'> {
  readonly name: PeerName;
  readonly notesFolder: string;
}

export interface PeersOptions {
  readonly folder: string;
  readonly keys: readonly string[];
  readonly profile: boolean;
  readonly closers: Closers;
}

/** Each peer starts once, with a separate Redis or PostgreSQL. Redis is configured like the service's. */
export function createPeers(options: PeersOptions): (name: PeerName) => Promise<Peer> {
  const started = new Map<PeerName, Promise<Peer>>();
  return (name) => {
    const peer = started.get(name) ?? startPeer(name, options);
    started.set(name, peer);
    return peer;
  };
}

async function startPeer(name: PeerName, options: PeersOptions): Promise<Peer> {
  const { keys, profile, closers } = options;
  const folder = join(options.folder, name);
  const { pids, ...urls } = await startStore(name, folder, closers);
  const settings: PeerSettings = { port: await findFreePort(), keys, ...urls };
  const notesFolder = join(folder, 'threads');
  const args = [resolveBenchPath(`./peers/${name.replace(syncSuffix, '')}.js`), JSON.stringify(settings)];
  const child = await startProcess(args, { NODE_OPTIONS: buildNotesOption(notesFolder, profile) });
  closers.add(name, () => stopProcess(child));
  return { name, port: settings.port, ...urls, notesFolder, pids, threads: () => readNotes(notesFolder) };
}

async function startStore(name: PeerName, folder: string, closers: Closers) {
  const none = { redisUrl: '', postgresUrl: '', pids: {} };
  if (name === 'echo') return none;
  if (name.includes('postgres')) {
    const commit = name.endsWith(syncSuffix) ? 'on' : 'off';
    const { postgresUrl, pid } = await startPostgres(folder, commit, closers);
    return { ...none, postgresUrl, pids: { postgres: pid } };
  }
  const { endpoints, pids } = await startMeasuredServers(folder, closers, '');
  return { ...none, redisUrl: endpoints.redisUrl, pids };
}
