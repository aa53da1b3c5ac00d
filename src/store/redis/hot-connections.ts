/**
 * The hot connections of a thread, for one task at a time: a WATCH belongs to its connection, and any EXEC ends it. A single
 * Redis takes the learners of all partitions in one transaction, over one connection. On a Cluster a transaction has one
 * slot: so each partition has a connection there, to the master of its slot, opened when it is first needed.
 */
import { type Cluster, Redis } from 'ioredis';
import { type RedisAddress, redisAddress } from '../../contracts/redis.js';
import { unavailable } from '../../errors.js';
import {
  codeOf,
  commandTimeoutMs,
  connectTimeoutMs,
  hotOptions,
  type RedisClient,
  whileRedisServes,
} from './client.js';
import { placeInCluster, renewPlaces } from './cluster.js';
import { type HotConnection, openHotConnection, passBy } from './hot-connection.js';
import { partitionPrefix } from './keys.js';

export interface HotConnections {
  /** The connection to a partition's learners, ready. @throws ApiError UNAVAILABLE */
  of(partition: number): Promise<HotConnection>;
  close(): void;
}

/**
 * @param url of a single Redis, or of nodes of a Cluster
 * @param redis another connection to the same, which tells where a Cluster's slots are
 */
export function openHotConnections(
  url: string,
  waitReplicas: number,
  redis: () => Promise<RedisClient>,
): HotConnections {
  const { nodes, login } = redisAddress(url);
  if (nodes.length > 1) return connectMasters(login, waitReplicas, redis as () => Promise<Cluster>);
  const hot = openHotConnection(url, waitReplicas);
  return {
    of: async () => {
      await hot.ready();
      return hot;
    },
    close: hot.close,
  };
}

function connectMasters(
  login: RedisAddress['login'],
  waitReplicas: number,
  cluster: () => Promise<Cluster>,
): HotConnections {
  const open = new Map<number, HotConnection>();
  return {
    of: async (partition) => {
      const client = await cluster();
      const known = open.get(partition);
      if (known?.isOpen() && known.isMaster()) return known;
      known?.close();
      const hot = masterOf(client, partition, login, waitReplicas);
      open.set(partition, hot);
      await hot.ready();
      return hot;
    },
    close: () => {
      for (const hot of open.values()) hot.close();
    },
  };
}

/** Replies of a node that is not the slot's master any more, or of a Cluster that is not whole. */
const elsewhere: ReadonlySet<string | null> = new Set(['MOVED', 'CLUSTERDOWN', 'MASTERDOWN', 'READONLY']);

/** Without the ready check nobody waits for a master that restarts: it replies to each command that it loads. */
const once = { lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null };

/** Connects once: after its end the caller asks again who is the master. @throws ApiError UNAVAILABLE where there is none */
function masterOf(
  client: Cluster,
  partition: number,
  login: RedisAddress['login'],
  waitReplicas: number,
): HotConnection {
  const place = () => placeInCluster(client, partitionPrefix(partition));
  const master = place()?.master;
  if (master === undefined) throw unavailable('No node of the state store has this learner right now');
  const redis = new Redis({ ...hotOptions, ...login, ...once, ...hostAndPort(master) });
  const isMaster = (): boolean => place()?.master === master;
  return {
    ...passBy(redis, commandTimeoutMs),
    reachesAll: false,
    waitReplicas: () => Math.min(waitReplicas, place()?.replicas ?? waitReplicas),
    isMaster,
    ready: () =>
      whileRedisServes(connectWithin(redis, connectTimeoutMs)).catch((error: unknown) => {
        void renewPlaces(client);
        throw error;
      }),
    leave: async (error) => {
      const code = codeOf(error);
      if (code !== null && !elsewhere.has(code)) return false;
      redis.disconnect();
      const renewed = renewPlaces(client);
      if (code !== 'MOVED') return false;
      await renewed;
      return !isMaster();
    },
  };
}

async function connectWithin(redis: Redis, timeoutMs: number): Promise<void> {
  const timer = setTimeout(() => redis.disconnect(), timeoutMs);
  try {
    await redis.connect();
  } finally {
    clearTimeout(timer);
  }
}

/** An address of version 6 has colons of its own. */
function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const end = address.lastIndexOf(':');
  return { host: address.slice(0, end), port: Number(address.slice(end + 1)) };
}
