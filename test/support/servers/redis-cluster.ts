/** A Redis Cluster of the test on loopback: three masters, each with a replica, storing nothing on the disk. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { maxListpackBytes } from '../../../src/contracts/settings/redis-settings.js';
import { findFreePort, isPortFree } from '../../../src/embedded/free-port.js';
import { waitUntilReady } from '../../../src/store/redis/connection/client.js';
import { waitFor } from '../wait.js';
import type { Scoped } from './service.js';

/** Why there can be no Cluster here, or false: for the option `skip` of a test. */
export const noCluster: string | false =
  spawnSync('redis-server', ['--version']).error === undefined ? false : 'redis-server is not installed';

export interface ClusterNode {
  readonly port: number;
  readonly pid: number | undefined;
  /** A connection of the test, for questions to this very node. */
  readonly redis: Redis;
  /** Resolves when the process has ended, where the signal ends it. */
  signal(signal: NodeJS.Signals): Promise<void>;
  /** A connection to a process that was ended takes a moment to notice. */
  isAlive(): boolean;
}

export interface TestCluster {
  /** As REDIS_URL takes it: the masters' addresses, so that replicas have to be found. */
  readonly url: string;
  readonly nodes: readonly ClusterNode[];
  /** The master that serves the key now, and its replica; waits until it has one. */
  serving(key: string): Promise<{ master: ClusterNode; replica: ClusterNode }>;
  /** Lets the others replace the key's master, which is gone; resolves when all of them see another one. */
  failOver(key: string, gone: ClusterNode): Promise<void>;
}

const masters = 3;
const slots = 16384;
/** After this long without an answer a node counts as gone, while the nodes meet and while one is replaced. */
const nodeTimeoutMs = 1500;
/** Otherwise a machine that stands still for a moment must not look like a node that is gone. */
const patientTimeoutMs = 60_000;
/** The bus of a node listens this much above its port. */
const busOffset = 10_000;
/** From here on systems hand out ports for outgoing connections. */
const outgoingPorts = 32_768;
/** How often the nodes are introduced to each other until they know each other. */
const inviteMs = 1000;
const password = 'test';

/** Starts it; it ends with the test. */
export async function startTestCluster(t: Scoped): Promise<TestCluster> {
  const dir = await mkdtemp(join(tmpdir(), 'skilltrace-cluster-'));
  const started: ClusterNode[] = [];
  t.after(async () => {
    for (const { redis } of started) redis.disconnect();
    await Promise.all(started.map(({ signal }) => signal('SIGKILL')));
    await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  });
  while (started.length < 2 * masters) started.push(await startNode(dir));
  await joinNodes(started);
  await waitFor('the Cluster to be whole', async () =>
    (await Promise.all(started.map(isWhole))).every(Boolean),
  );
  // Only now: until they know each other, nodes talk as often as the time-out asks for.
  await setNodeTimeout(started, patientTimeoutMs);
  return clusterOf(started);
}

/** On another port where somebody took its port before it did. */
async function startNode(dir: string): Promise<ClusterNode> {
  for (let tries = 1; tries <= 3; tries++) {
    const node = await spawnNode(dir, await freeClusterPort());
    if (await answersItself(node)) return node;
    await node.signal('SIGKILL');
  }
  throw new Error(`no redis-server of ${dir} starts`);
}

async function answersItself({ redis, pid }: ClusterNode): Promise<boolean> {
  const answering = await waitUntilReady(redis, 10_000).then(
    () => redis.info('server'),
    () => '',
  );
  return answering.includes(`\nprocess_id:${pid}\r`);
}

async function spawnNode(dir: string, port: number): Promise<ClusterNode> {
  const folder = join(dir, `${port}`);
  await mkdir(folder);
  const child = spawn('redis-server', settingsOf(port, folder), { stdio: 'ignore' });
  await once(child, 'spawn');
  const redis = new Redis({ port, password, retryStrategy: () => 50 });
  redis.on('error', () => undefined);
  const signal = async (name: NodeJS.Signals): Promise<void> => {
    await signalTo(child, name);
    if (name === 'SIGKILL') redis.disconnect();
  };
  const isAlive = (): boolean => child.signalCode === null && redis.status === 'ready';
  return { port, pid: child.pid, redis, signal, isAlive };
}

const settingsOf = (port: number, folder: string): string[] =>
  Object.entries({
    port,
    bind: '127.0.0.1',
    dir: folder,
    save: '',
    appendonly: 'no',
    // As the embedded one has it.
    'hash-max-ziplist-value': maxListpackBytes,
    requirepass: password,
    masterauth: password,
    'cluster-enabled': 'yes',
    'cluster-node-timeout': nodeTimeoutMs,
    'cluster-require-full-coverage': 'no',
    // However long it has not heard of its master, a replica may take its place.
    'cluster-replica-validity-factor': 0,
    // A replica that has never heard of its master counts for little: not ten seconds later, but at once.
    'repl-diskless-sync-delay': 0,
    'repl-ping-replica-period': 1,
  }).flatMap(([name, value]) => [`--${name}`, `${value}`]);

async function freeClusterPort(): Promise<number> {
  for (;;) {
    const port = await findFreePort();
    if (port + busOffset < outgoingPorts && (await isPortFree(port + busOffset))) return port;
  }
}

async function signalTo(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  if (signal === 'SIGKILL') await ended;
}

/** What `redis-cli --cluster create` does, without its pauses. */
async function joinNodes(nodes: readonly ClusterNode[]): Promise<void> {
  await Promise.all(
    nodes.slice(0, masters).map(async ({ redis }, i) => {
      await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
      const from = Math.ceil((i * slots) / masters);
      const to = Math.ceil(((i + 1) * slots) / masters);
      await redis.cluster('ADDSLOTS', ...Array.from({ length: to - from }, (_, slot) => from + slot));
    }),
  );
  await meet(nodes);
  for (const [i, { redis }] of nodes.slice(masters).entries()) {
    const master = await (nodes[i] as ClusterNode).redis.cluster('MYID');
    await redis.cluster('REPLICATE', String(master));
  }
}

/** Resolves when everybody knows everybody. */
async function meet(nodes: readonly ClusterNode[]): Promise<void> {
  const [first, ...others] = nodes as [ClusterNode, ...ClusterNode[]];
  let invitedAt = Number.NEGATIVE_INFINITY;
  await waitFor('everybody to know everybody', async () => {
    // Again and again: whoever stands still while it is greeted is forgotten.
    if (performance.now() - invitedAt > inviteMs) {
      for (const { port } of others) await first.redis.cluster('MEET', '127.0.0.1', port);
      invitedAt = performance.now();
    }
    return (await Promise.all(nodes.map(acquaintances))).every((known) => known === nodes.length);
  });
}

/** How many nodes it knows by their names, itself among them: of the others it has the address only. */
async function acquaintances({ redis }: ClusterNode): Promise<number> {
  const lines = String(await redis.cluster('NODES'))
    .trimEnd()
    .split('\n');
  return lines.filter((line) => !line.includes('handshake')).length;
}

function clusterOf(nodes: readonly ClusterNode[]): TestCluster {
  const alive = () => nodes.filter((node) => node.isAlive());
  const byPort = (port: number | undefined) => nodes.find((node) => node.port === port) as ClusterNode;
  return {
    nodes,
    url: nodes
      .slice(0, masters)
      .map(({ port }) => `redis://:${password}@127.0.0.1:${port}`)
      .join(','),
    async serving(key) {
      let places: number[] = [];
      await waitFor(`master and replica of ${key}`, async () => {
        places = await placesOf(alive()[0] as ClusterNode, key);
        return places.length === 2;
      });
      const [master, replica] = places;
      return { master: byPort(master), replica: byPort(replica) };
    },
    async failOver(key, gone) {
      const others = alive();
      await setNodeTimeout(others, nodeTimeoutMs);
      await waitFor('the failover', () => haveMoved(others, key, gone));
      await setNodeTimeout(others, patientTimeoutMs);
    },
  };
}

const setNodeTimeout = (nodes: readonly ClusterNode[], ms: number): Promise<unknown> =>
  Promise.all(nodes.map(({ redis }) => redis.config('SET', 'cluster-node-timeout', ms)));

/**
 * It serves, and knows of a master and a replica for every slot; one that has not synchronised yet is not listed. A
 * node refuses commands for a moment after it has heard of all slots.
 */
async function isWhole({ redis }: ClusterNode): Promise<boolean> {
  const [info, ranges] = await Promise.all([redis.cluster('INFO'), redis.cluster('SLOTS')]);
  const text = String(info);
  const served = text.includes('cluster_state:ok') && text.includes(`cluster_slots_ok:${slots}`);
  return served && ranges.every(([, , ...places]) => places.length === 2);
}

/** Ports of the key's master and its replicas, as the node sees it. */
async function placesOf({ redis }: ClusterNode, key: string): Promise<number[]> {
  const [slot, ranges] = await Promise.all([redis.cluster('KEYSLOT', key), redis.cluster('SLOTS')]);
  const range = ranges.find(([from, to]) => Number(slot) >= from && Number(slot) <= to);
  return (range?.slice(2) ?? []).map((place) => Number((place as unknown[])[1]));
}

/** Whether all see another node serve the key than the one that is gone. */
async function haveMoved(nodes: readonly ClusterNode[], key: string, gone: ClusterNode): Promise<boolean> {
  const masters = await Promise.all(nodes.map(async (node) => (await placesOf(node, key))[0]));
  return masters.every((master) => master !== undefined && master !== gone.port);
}
