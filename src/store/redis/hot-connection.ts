/**
 * ioredis handles connect, login, TLS and reconnects. Commands and replies bypass ioredis, which would
 * dominate a worker's CPU time.
 */
import { once } from 'node:events';
import { type Cluster, Redis } from 'ioredis';
import { parseRedisAddress, type RedisAddress } from '../../contracts/redis-settings.js';
import { unavailable } from '../../errors.js';
import {
  codeOf,
  commandTimeoutMs,
  connectTimeoutMs,
  hotOptions,
  noteErrors,
  placeInCluster,
  type RedisClient,
  renewPlaces,
  whenReady,
  whileRedisServes,
} from './client.js';
import type { CommandBytes } from './command-bytes.js';
import { partitionPrefix } from './keys.js';
import { createReplyReader, type Reply } from './replies.js';

export interface HotConnection extends ReturnType<typeof passBy> {
  readonly reachesAll: boolean;
  waitReplicas(): number;
  isMaster(): boolean;
  /** @throws ApiError UNAVAILABLE */
  ready(): Promise<void>;
  /** @returns true if nothing was executed and the new master is known: a retry is safe */
  leave(error: unknown): Promise<boolean>;
}

export function openHotConnection(url: string, waitReplicas: number, timeoutMs = commandTimeoutMs) {
  const client = new Redis(url, hotOptions);
  const passing = passBy(client, timeoutMs);
  return {
    ...passing,
    reachesAll: true,
    waitReplicas: () => waitReplicas,
    isMaster: () => true,
    ready: async () => {
      // The socket may close before ioredis notices.
      const ended = client.status === 'ready' && !passing.isOpen() ? once(client, 'close') : null;
      await whileRedisServes(Promise.resolve(ended).then(() => whenReady(client, connectTimeoutMs)));
    },
    leave: async (error: unknown) => {
      if (codeOf(error) === 'READONLY') client.stream.destroy();
      return false;
    },
  };
}

function passBy(client: Redis, timeoutMs: number) {
  noteErrors(client);
  let line: ReturnType<typeof takeOver> | null = null;
  const isOpen = (): boolean => client.status === 'ready' && client.stream.writable === true;

  return {
    isOpen,
    /** Changes with a reconnect, which ends all WATCHes. */
    current: (): object => client.stream,
    /**
     * Error replies are returned as Error objects.
     * @throws Error without a connection or if it is lost: Redis may have executed the commands
     */
    send: async (commands: CommandBytes): Promise<Reply[]> => {
      const { stream } = client;
      if (!isOpen()) throw new Error('Connection is closed.');
      // ioredis has the replies to all commands that it sent, and reads no more.
      if (line?.stream !== stream) line = takeOver(stream);
      return line.exchange(commands, timeoutMs);
    },
    close: (): void => client.disconnect(),
  };
}

function takeOver(stream: Redis['stream']) {
  const reader = createReplyReader();
  const open: { readonly count: number; readonly replies: Reply[]; settle(error: Error | null): void }[] = [];

  function failAll(error: Error): void {
    for (const waiting of open.splice(0)) waiting.settle(error);
  }
  /** Later replies cannot be matched to requests. */
  function giveUp(error: Error): void {
    failAll(error);
    stream.destroy();
  }
  /** Parses the whole chunk first: replies next to an unexpected one cannot be trusted. */
  function takeReplies(): void {
    let complete = 0;
    for (let reply = reader.next(); reply !== undefined; reply = reader.next()) {
      const waiting = open[complete];
      if (waiting === undefined) throw new Error('Redis sent more than was asked for');
      if (waiting.replies.push(reply) === waiting.count) complete += 1;
    }
    for (const waiting of open.splice(0, complete)) waiting.settle(null);
  }

  stream.removeAllListeners('data');
  stream.on('data', (bytes: Buffer) => {
    try {
      reader.add(bytes);
      takeReplies();
    } catch (error) {
      giveUp(error as Error);
    }
  });
  stream.on('close', () => failAll(new Error('Connection is closed.')));

  return {
    stream,
    exchange: (commands: CommandBytes, timeoutMs: number): Promise<Reply[]> =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => giveUp(new Error('Command timed out')), timeoutMs);
        const replies: Reply[] = [];
        const settle = (error: Error | null): void => {
          clearTimeout(timer);
          if (error === null) resolve(replies);
          else reject(error);
        };
        open.push({ count: commands.count(), replies, settle });
        stream.write(commands.done(), () => commands.release());
      }),
  };
}

export type HotConnections = ReturnType<typeof openHotConnections>;

export function openHotConnections(url: string, waitReplicas: number, redis: () => Promise<RedisClient>) {
  const { nodes, login } = parseRedisAddress(url);
  const single = nodes.length === 1 ? openHotConnection(url, waitReplicas) : null;
  const masters = new Map<number, HotConnection>();

  async function masterNow(partition: number): Promise<HotConnection> {
    const cluster = (await redis()) as Cluster;
    const known = masters.get(partition);
    if (known?.isOpen() && known.isMaster()) return known;
    known?.close();
    const hot = masterOf(cluster, partition, login, waitReplicas);
    masters.set(partition, hot);
    await hot.ready();
    return hot;
  }

  return {
    /** @throws ApiError UNAVAILABLE */
    of: async (partition: number): Promise<HotConnection> => {
      if (single === null) return masterNow(partition);
      await single.ready();
      return single;
    },
    close: (): void => {
      for (const hot of [...masters.values(), ...(single ? [single] : [])]) hot.close();
    },
  };
}

const elsewhere: ReadonlySet<string | null> = new Set(['MOVED', 'CLUSTERDOWN', 'MASTERDOWN', 'READONLY']);

/** Without the ready check, a restarting master replies LOADING instead of delaying callers. */
const connectOnce = { lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null };

/** Never reconnects: the caller opens another connection. @throws ApiError UNAVAILABLE */
function masterOf(
  client: Cluster,
  partition: number,
  login: RedisAddress['login'],
  waitReplicas: number,
): HotConnection {
  const place = () => placeInCluster(client, partitionPrefix(partition));
  const master = place()?.master;
  if (master === undefined) throw unavailable('No node of the state store has this learner right now');
  const redis = new Redis({ ...hotOptions, ...login, ...connectOnce, ...hostAndPort(master) });
  const isMaster = (): boolean => place()?.master === master;
  return {
    ...passBy(redis, commandTimeoutMs),
    reachesAll: false,
    waitReplicas: () => Math.min(waitReplicas, place()?.replicas ?? waitReplicas),
    isMaster,
    ready: async () => {
      const timer = setTimeout(() => redis.disconnect(), connectTimeoutMs);
      try {
        await whileRedisServes(redis.connect());
      } catch (error) {
        void renewPlaces(client);
        throw error;
      } finally {
        clearTimeout(timer);
      }
    },
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

/** An IPv6 address contains colons. */
function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const end = address.lastIndexOf(':');
  return { host: address.slice(0, end), port: Number(address.slice(end + 1)) };
}
