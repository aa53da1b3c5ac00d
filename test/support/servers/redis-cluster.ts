/** A Redis Cluster on loopback: three masters with a replica each, without persistence. */
import { type ChildProcess, execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { maxListpackBytes } from '../../../src/contracts/settings/redis-settings.js';
import { findFreePort, isPortFree } from '../../../src/embedded/free-port.js';
import { waitUntilReady } from '../../../src/store/redis/connection/client.js';
import { reversed, type Scoped } from '../scope.js';
import { tempDir } from '../temp.js';
import { askUntil, waitFor } from '../wait.js';
import { exitOf, spawnBound } from './processes.js';

const missing = ['redis-server', 'redis-cli'].find(
  (name) => spawnSync(name, ['--version']).error !== undefined,
);

/** Reason for the option `skip` of a test; false if a Cluster can start. */
export const noCluster: string | false = missing === undefined ? false : `${missing} is not installed`;

export type ClusterNode = ReturnType<typeof createNode>;
export type TestCluster = Awaited<ReturnType<typeof startTestCluster>>;

const masters = 3;
/** High, because a busy machine delays the replies of nodes. */
const nodeTimeoutMs = 60_000;
/** Until another node replaces a dead master. */
const failoverTimeoutMs = 1500;
/** The cluster bus uses the port plus this offset. */
const busOffset = 10_000;
/** Ephemeral ports start here. */
const firstEphemeralPort = 32_768;
const password = 'test';

export async function startTestCluster(t: Scoped) {
  const scope = reversed(t);
  const dir = await tempDir(scope);
  const nodes: ClusterNode[] = [];
  scope.after(() => Promise.all(nodes.map(({ signal }) => signal('SIGKILL'))));
  while (nodes.length < 2 * masters) nodes.push(await startNode(dir));
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`);
  // The first half become masters.
  const create = ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes'];
  await promisify(execFile)('redis-cli', ['-a', password, ...create], { timeout: 180_000 });
  await waitFor('a complete Cluster', async () => (await Promise.all(nodes.map(isComplete))).every(Boolean));
  const listAlive = () => nodes.filter((node) => node.isAlive());
  return {
    nodes,
    /** REDIS_URL with the masters only. */
    url: addresses
      .slice(0, masters)
      .map((address) => `redis://:${password}@${address}`)
      .join(),
    /** Waits until the key has a master and a replica. */
    findNodes: async (key: string): Promise<{ master: ClusterNode; replica: ClusterNode }> => {
      const read = () => readPorts(listAlive()[0] as ClusterNode, key);
      const ports = await askUntil(`master and replica of ${key}`, read, ({ length }) => length === 2);
      const found = ports.map((port) => nodes.find((node) => node.port === port));
      const [master, replica] = found as [ClusterNode, ClusterNode];
      return { master, replica };
    },
    /** Lets the replica replace a dead master; resolves when all nodes know it. */
    failOver: async (key: string, dead: ClusterNode): Promise<void> => {
      const others = listAlive();
      await setNodeTimeout(others, failoverTimeoutMs);
      await waitFor('the failover', async () => {
        const found = await Promise.all(others.map(async (node) => (await readPorts(node, key))[0]));
        return found.every((port) => port !== undefined && port !== dead.port);
      });
      await setNodeTimeout(others, nodeTimeoutMs);
    },
  };
}

/** Another process may take the port first; then the next attempt uses another port. */
async function startNode(dir: string): Promise<ClusterNode> {
  for (let attempt = 1; attempt <= 3; attempt++) {
    const port = await findClusterPort();
    const folder = join(dir, `${port}`);
    await mkdir(folder);
    const child = spawnBound('redis-server', createSettings(port, folder));
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

function createNode(port: number, child: ChildProcess) {
  const redis = new Redis({ port, password, retryStrategy: () => 50 });
  redis.on('error', () => undefined);
  return {
    port,
    /** A connection of the test to this node. */
    redis,
    /** Resolves when SIGKILL has ended the process. */
    signal: async (name: NodeJS.Signals): Promise<void> => {
      child.kill(name);
      if (name !== 'SIGKILL') return;
      redis.disconnect();
      await exitOf(child);
    },
    isAlive: (): boolean => child.signalCode === null && redis.status === 'ready',
  };
}

const createSettings = (port: number, folder: string): string[] =>
  Object.entries({
    ...{ port, bind: '127.0.0.1', dir: folder, save: '', appendonly: 'no' },
    ...{ requirepass: password, masterauth: password, 'hash-max-ziplist-value': maxListpackBytes },
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
