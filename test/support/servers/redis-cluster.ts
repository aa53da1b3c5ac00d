/** A Redis Cluster on loopback: three masters with a replica each, without persistence. */
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

/** Reason for the option `skip` of a test; false if a Cluster can start. */
export const noCluster: string | false =
  spawnSync('redis-server', ['--version']).error === undefined ? false : 'redis-server is not installed';

export interface ClusterNode {
  readonly port: number;
  /** A connection of the test to this node. */
  readonly redis: Redis;
  /** Resolves when SIGKILL has ended the process. */
  signal(signal: NodeJS.Signals): Promise<void>;
  isAlive(): boolean;
}

export type TestCluster = Awaited<ReturnType<typeof startTestCluster>>;

const masters = 3;
const slots = 16384;
/** Timeout during startup and failovers. */
const nodeTimeoutMs = 1500;
/** High, because a busy machine delays the replies of nodes. */
const normalTimeoutMs = 60_000;
/** The cluster bus uses the port plus this offset. */
const busOffset = 10_000;
/** Ephemeral ports start here. */
const firstEphemeralPort = 32_768;
const meetEveryMs = 1000;
const password = 'test';

export async function startTestCluster(t: Scoped) {
  const dir = await mkdtemp(join(tmpdir(), 'skilltrace-cluster-'));
  const nodes: ClusterNode[] = [];
  t.after(async () => {
    await Promise.all(nodes.map(({ signal }) => signal('SIGKILL')));
    await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  });
  while (nodes.length < 2 * masters) nodes.push(await startNode(dir));
  await joinNodes(nodes);
  await waitFor('a complete Cluster', async () => (await Promise.all(nodes.map(isComplete))).every(Boolean));
  await setNodeTimeout(nodes, normalTimeoutMs);
  const listAlive = () => nodes.filter((node) => node.isAlive());
  return {
    nodes,
    /** REDIS_URL with the masters only. */
    url: nodes
      .slice(0, masters)
      .map(({ port }) => `redis://:${password}@127.0.0.1:${port}`)
      .join(','),
    /** Waits until the key has a master and a replica. */
    findNodes: async (key: string): Promise<{ master: ClusterNode; replica: ClusterNode }> => {
      let found: (ClusterNode | undefined)[] = [];
      await waitFor(`master and replica of ${key}`, async () => {
        const ports = await readPorts(listAlive()[0] as ClusterNode, key);
        found = ports.map((port) => nodes.find((node) => node.port === port));
        return found.length === 2;
      });
      const [master, replica] = found as [ClusterNode, ClusterNode];
      return { master, replica };
    },
    /** Lets the replica replace a dead master; resolves when all nodes know it. */
    failOver: async (key: string, dead: ClusterNode): Promise<void> => {
      const others = listAlive();
      await setNodeTimeout(others, nodeTimeoutMs);
      await waitFor('the failover', async () => {
        const found = await Promise.all(others.map(async (node) => (await readPorts(node, key))[0]));
        return found.every((port) => port !== undefined && port !== dead.port);
      });
      await setNodeTimeout(others, normalTimeoutMs);
    },
  };
}

/** Another process may take the port first; then the next attempt uses another port. */
async function startNode(dir: string): Promise<ClusterNode> {
  for (let attempt = 1; attempt <= 3; attempt++) {
    const port = await findClusterPort();
    const folder = join(dir, `${port}`);
    await mkdir(folder);
    const child = spawn('redis-server', createSettings(port, folder), { stdio: 'ignore' });
    await once(child, 'spawn');
    const node = createNode(port, child);
    const info = await waitUntilReady(node.redis, 10_000).then(
      () => node.redis.info('server'),
      () => '',
    );
    if (info.includes(`\nprocess_id:${child.pid}\r`)) return node;
    await node.signal('SIGKILL');
  }
  throw new Error(`no redis-server starts in ${dir}`);
}

function createNode(port: number, child: ChildProcess): ClusterNode {
  const redis = new Redis({ port, password, retryStrategy: () => 50 });
  redis.on('error', () => undefined);
  const signal = async (name: NodeJS.Signals): Promise<void> => {
    if (name === 'SIGKILL') redis.disconnect();
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(name);
    if (name === 'SIGKILL') await ended;
  };
  return { port, redis, signal, isAlive: () => child.signalCode === null && redis.status === 'ready' };
}

const createSettings = (port: number, folder: string): string[] =>
  Object.entries({
    port,
    bind: '127.0.0.1',
    dir: folder,
    save: '',
    appendonly: 'no',
    'hash-max-ziplist-value': maxListpackBytes,
    requirepass: password,
    masterauth: password,
    'cluster-enabled': 'yes',
    'cluster-node-timeout': nodeTimeoutMs,
    'cluster-require-full-coverage': 'no',
    // A replica may replace its master however old its data is.
    'cluster-replica-validity-factor': 0,
    'repl-diskless-sync-delay': 0,
    'repl-ping-replica-period': 1,
  }).flatMap(([name, value]) => [`--${name}`, `${value}`]);

async function findClusterPort(): Promise<number> {
  for (;;) {
    const port = await findFreePort();
    if (port + busOffset < firstEphemeralPort && (await isPortFree(port + busOffset))) return port;
  }
}

/** Like `redis-cli --cluster create`, without its pauses. */
async function joinNodes(nodes: readonly ClusterNode[]): Promise<void> {
  const assignSlots = async ({ redis }: ClusterNode, i: number): Promise<void> => {
    await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    const from = Math.ceil((i * slots) / masters);
    const to = Math.ceil(((i + 1) * slots) / masters);
    await redis.cluster('ADDSLOTS', ...Array.from({ length: to - from }, (_, slot) => from + slot));
  };
  await Promise.all(nodes.slice(0, masters).map(assignSlots));
  const [first, ...others] = nodes as [ClusterNode, ...ClusterNode[]];
  let metAt = Number.NEGATIVE_INFINITY;
  await waitFor('all nodes to know each other', async () => {
    // The others forget a node that is too slow during the handshake.
    if (performance.now() - metAt > meetEveryMs) {
      for (const { port } of others) await first.redis.cluster('MEET', '127.0.0.1', port);
      metAt = performance.now();
    }
    return (await Promise.all(nodes.map(countKnown))).every((known) => known === nodes.length);
  });
  for (const [i, { redis }] of nodes.slice(masters).entries())
    await redis.cluster('REPLICATE', String(await nodes[i]?.redis.cluster('MYID')));
}

async function countKnown({ redis }: ClusterNode): Promise<number> {
  const lines = String(await redis.cluster('NODES')).trimEnd();
  return lines.split('\n').filter((line) => !line.includes('handshake')).length;
}

const setNodeTimeout = (nodes: readonly ClusterNode[], ms: number): Promise<unknown> =>
  Promise.all(nodes.map(({ redis }) => redis.config('SET', 'cluster-node-timeout', ms)));

/** The node knows a master and a synchronised replica of every slot. It rejects commands shortly before. */
async function isComplete({ redis }: ClusterNode): Promise<boolean> {
  const [info, ranges] = await Promise.all([redis.cluster('INFO'), redis.cluster('SLOTS')]);
  const isServing = /cluster_state:ok.*cluster_slots_ok:16384/s.test(String(info));
  return isServing && ranges.every(([, , ...nodes]) => nodes.length === 2);
}

/** Ports of the key's master and replicas. */
async function readPorts({ redis }: ClusterNode, key: string): Promise<number[]> {
  const [slot, ranges] = await Promise.all([redis.cluster('KEYSLOT', key), redis.cluster('SLOTS')]);
  const range = ranges.find(([from, to]) => Number(slot) >= from && Number(slot) <= to);
  return (range?.slice(2) ?? []).map((node) => Number((node as unknown[])[1]));
}
