/**
 * ioredis handles connect, login, TLS and reconnects. Commands and replies bypass ioredis, which would
 * dominate a worker's CPU time.
 */
import { once } from 'node:events';
import { type Cluster, Redis } from 'ioredis';
import { parseRedisAddress, type RedisAddress } from '../../../contracts/settings/redis-settings.js';
import { unavailable } from '../../../errors.js';
import { partitionPrefix } from '../keys.js';
import type { CommandEncoder } from '../wire/command-encoder.js';
import { createReplyParser, type Reply } from '../wire/replies.js';
import {
  commandTimeoutMs,
  connectTimeoutMs,
  findSlotMaster,
  hotConnectionOptions,
  mapRedisErrors,
  parseErrorCode,
  type RedisClient,
  recordLastError,
  refreshSlots,
  waitUntilReady,
} from './client.js';

export interface HotConnection extends ReturnType<typeof createBypass> {
  readonly servesAllPartitions: boolean;
  requiredReplicas(): number;
  isMaster(): boolean;
  /** @throws ApiError UNAVAILABLE */
  waitUntilReady(): Promise<void>;
  /** @returns true if nothing was executed and the new master is known: a retry is safe */
  closeIfMoved(error: unknown): Promise<boolean>;
}

export function openHotConnection(url: string, requiredReplicas: number, timeoutMs = commandTimeoutMs) {
  const client = new Redis(url, hotConnectionOptions);
  const bypass = createBypass(client, timeoutMs);
  return {
    ...bypass,
    servesAllPartitions: true,
    requiredReplicas: () => requiredReplicas,
    isMaster: () => true,
    waitUntilReady: async () => {
      // The socket may close before ioredis notices.
      const ended = client.status === 'ready' && !bypass.isOpen() ? once(client, 'close') : null;
      await mapRedisErrors(Promise.resolve(ended).then(() => waitUntilReady(client, connectTimeoutMs)));
    },
    closeIfMoved: async (error: unknown) => {
      if (parseErrorCode(error) === 'READONLY') client.stream.destroy();
      return false;
    },
  };
}

function createBypass(client: Redis, timeoutMs: number) {
  recordLastError(client);
  let channel: ReturnType<typeof attachToSocket> | null = null;
  const isOpen = (): boolean => client.status === 'ready' && client.stream.writable === true;

  return {
    isOpen,
    /** Changes with a reconnect, which ends all WATCHes. */
    currentSocket: (): object => client.stream,
    /**
     * Error replies are returned as Error objects.
     * @throws Error without a connection or if it is lost: Redis may have executed the commands
     */
    send: async (commands: CommandEncoder): Promise<Reply[]> => {
      const { stream } = client;
      if (!isOpen()) throw new Error('Connection is closed.');
      // ioredis has the replies to all commands that it sent, and reads no more.
      if (channel?.stream !== stream) channel = attachToSocket(stream);
      return channel.exchange(commands, timeoutMs);
    },
    close: (): void => client.disconnect(),
  };
}

function attachToSocket(stream: Redis['stream']) {
  const reader = createReplyParser();
  const inFlight: {
    readonly count: number;
    readonly replies: Reply[];
    complete(error: Error | null): void;
  }[] = [];

  function failAll(error: Error): void {
    for (const request of inFlight.splice(0)) request.complete(error);
  }
  /** Later replies cannot be matched to requests. */
  function failAndClose(error: Error): void {
    failAll(error);
    stream.destroy();
  }
  /** Parses the whole chunk first: replies next to an unexpected one cannot be trusted. */
  function processReplies(): void {
    let completeCount = 0;
    for (let reply = reader.next(); reply !== undefined; reply = reader.next()) {
      const request = inFlight[completeCount];
      if (request === undefined) throw new Error('unexpected extra reply from Redis');
      if (request.replies.push(reply) === request.count) completeCount += 1;
    }
    for (const request of inFlight.splice(0, completeCount)) request.complete(null);
  }

  stream.removeAllListeners('data');
  stream.on('data', (bytes: Buffer) => {
    try {
      reader.add(bytes);
      processReplies();
    } catch (error) {
      failAndClose(error as Error);
    }
  });
  stream.on('close', () => failAll(new Error('Connection is closed.')));

  return {
    stream,
    exchange: (commands: CommandEncoder, timeoutMs: number): Promise<Reply[]> =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => failAndClose(new Error('Command timed out')), timeoutMs);
        const replies: Reply[] = [];
        const complete = (error: Error | null): void => {
          clearTimeout(timer);
          if (error === null) resolve(replies);
          else reject(error);
        };
        inFlight.push({ count: commands.commandCount(), replies, complete });
        stream.write(commands.toBuffer(), () => commands.release());
      }),
  };
}

export type HotConnections = ReturnType<typeof openHotConnections>;

export function openHotConnections(url: string, waitReplicas: number, redis: () => Promise<RedisClient>) {
  const { nodes, login } = parseRedisAddress(url);
  const single = nodes.length === 1 ? openHotConnection(url, waitReplicas) : null;
  const masters = new Map<number, HotConnection>();

  async function connectToMaster(partition: number): Promise<HotConnection> {
    const cluster = (await redis()) as Cluster;
    const existing = masters.get(partition);
    if (existing?.isOpen() && existing.isMaster()) return existing;
    existing?.close();
    const hot = openMasterConnection(cluster, partition, login, waitReplicas);
    masters.set(partition, hot);
    await hot.waitUntilReady();
    return hot;
  }

  return {
    /** @throws ApiError UNAVAILABLE */
    forPartition: async (partition: number): Promise<HotConnection> => {
      if (single === null) return connectToMaster(partition);
      await single.waitUntilReady();
      return single;
    },
    close: (): void => {
      for (const hot of [...masters.values(), ...(single ? [single] : [])]) hot.close();
    },
  };
}

const movedCodes: ReadonlySet<string | null> = new Set(['MOVED', 'CLUSTERDOWN', 'MASTERDOWN', 'READONLY']);

/** Without the ready check, a restarting master replies LOADING instead of delaying callers. */
const connectOnceOptions = { lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null };

/** Never reconnects: the caller opens another connection. @throws ApiError UNAVAILABLE */
function openMasterConnection(
  client: Cluster,
  partition: number,
  login: RedisAddress['login'],
  waitReplicas: number,
): HotConnection {
  const findMaster = () => findSlotMaster(client, partitionPrefix(partition));
  const master = findMaster()?.master;
  if (master === undefined)
    throw unavailable('Learner state is temporarily unavailable; retry with the same event_id.');
  const redis = new Redis({
    ...hotConnectionOptions,
    ...login,
    ...connectOnceOptions,
    ...parseAddress(master),
  });
  const isMaster = (): boolean => findMaster()?.master === master;
  return {
    ...createBypass(redis, commandTimeoutMs),
    servesAllPartitions: false,
    requiredReplicas: () => Math.min(waitReplicas, findMaster()?.replicas ?? waitReplicas),
    isMaster,
    waitUntilReady: async () => {
      const timer = setTimeout(() => redis.disconnect(), connectTimeoutMs);
      try {
        await mapRedisErrors(redis.connect());
      } catch (error) {
        void refreshSlots(client);
        throw error;
      } finally {
        clearTimeout(timer);
      }
    },
    closeIfMoved: async (error) => {
      const code = parseErrorCode(error);
      if (code !== null && !movedCodes.has(code)) return false;
      redis.disconnect();
      const renewed = refreshSlots(client);
      if (code !== 'MOVED') return false;
      await renewed;
      return !isMaster();
    },
  };
}

/** An IPv6 address contains colons. */
function parseAddress(address: string): { readonly host: string; readonly port: number } {
  const end = address.lastIndexOf(':');
  return { host: address.slice(0, end), port: Number(address.slice(end + 1)) };
}
