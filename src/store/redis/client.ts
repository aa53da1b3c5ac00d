import type { EventEmitter } from 'node:events';
import {
  type ChainableCommander,
  Cluster,
  type ClusterOptions,
  Command,
  Redis,
  type RedisOptions,
} from 'ioredis';
import { troubleOf } from '../../connection-trouble.js';
import { type RedisAddress, redisAddress } from '../../contracts/redis.js';
import { unavailable } from '../../errors.js';

/**
 * ioredis has a class that extends String, so V8 (Node 20, 22) turns String.prototype into a dictionary: an answer takes a
 * tenth longer. About ten reads through an object of it, in a function, end that.
 */
function makeStringsFast(): void {
  const text = Object('') as string;
  for (let reads = 0; reads < 100; reads++) text.trim;
}
makeStringsFast();

export type RedisClient = Redis | Cluster;

/** After this long without a reply a command has failed: the caller gets a 503. */
export const commandTimeoutMs = 5000;
export const connectTimeoutMs = 5000;
/** A connection on which nothing comes back for so long is replaced. */
const socketTimeout = 10_000;

/** Without `socketTimeout`. No command is sent twice, for it may have been executed; none waits for a connection. */
const options = {
  commandTimeout: commandTimeoutMs,
  connectTimeout: connectTimeoutMs,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (attempt: number) => Math.min(25 * 2 ** attempt, 250),
  // A failover behind one address does not always end connections to the old master.
  reconnectOnError: (error: Error) => codeOf(error) === 'READONLY',
} satisfies RedisOptions;

/**
 * Of a connection whose replies ioredis does not read (hot-connection.ts), which has its own time-out. While Redis loads, ioredis
 * asks again by a timer that must end before it reconnects: else the new connection brings a reply that nobody waits for.
 */
export const hotOptions = { ...options, protocol: 2, maxLoadingRetryTime: 25 } satisfies RedisOptions;

/**
 * Connects to Redis and stays connected: reconnects for ever, with back-off.
 * @param url one `redis://` or `rediss://` URL, or several of a Cluster's nodes separated by commas
 * @param waitReplicas how many replicas must have a write before it is confirmed (replication.ts)
 */
export function connectRedis(url: string, waitReplicas = 0): RedisClient {
  const address = redisAddress(url);
  const [node] = address.nodes;
  const isSingle = address.nodes.length === 1;
  const client = isSingle
    ? new Redis(node as string, { ...options, socketTimeout })
    : connectCluster(address);
  noteErrors(client);
  waits.set(client, waitReplicas);
  return client;
}

/** A node says where a slot is (MOVED), but not while it hangs, and none names its replicas. */
const slotsRefreshMs = 5000;

/**
 * Follows MOVED alone. ioredis would also repeat a command whose connection was lost, which may count an answer twice. And it
 * would follow ASK to a node that gets a slot key by key: there a script might miss a learner and begin a new one.
 */
class CarefulCluster extends Cluster {
  override handleError(...[error, ttl, handlers]: Parameters<Cluster['handleError']>): void {
    if (error.message.startsWith('MOVED ')) super.handleError(error, ttl, handlers);
    else handlers.defaults();
  }
}

function connectCluster({ nodes, login }: RedisAddress): Cluster {
  const { commandTimeout, connectTimeout } = options;
  const client = new CarefulCluster([...nodes], {
    // No command may wait for a connection: all are made at once, to replicas too. The ready check would be such a command.
    enableOfflineQueue: false,
    enableReadyCheck: false,
    redisOptions: { commandTimeout, connectTimeout, socketTimeout, ...login, lazyConnect: false },
    dnsLookup: keepName,
  });
  // ioredis' own interval goes on for ever where the connection is ended in the middle of a refresh.
  const timer = setInterval(() => {
    if (client.status === 'disconnecting' || client.status === 'end') clearInterval(timer);
    else if (client.status === 'ready') client.refreshSlotsCache();
  }, slotsRefreshMs);
  timer.unref();
  return client;
}

/** Names are looked up for each connection: a certificate has the name, and addresses change. */
const keepName: NonNullable<ClusterOptions['dnsLookup']> = (name, found) => found(null, name);

/**
 * The key's master (host:port) and the number of its replicas, as far as the client knows; a Cluster does not list replicas
 * that it holds for dead. Null where no node is known to have the key.
 */
export function placeInCluster(client: Cluster, key: string) {
  const [master, ...others] = client.slots[new Command('get', [key]).getSlot()] ?? [];
  if (master === undefined) return null;
  return { master, replicas: others.filter((other) => other !== master).length };
}

/** Asks a node where the slots are; resolves also where none answers. */
export const renewPlaces = (client: Cluster): Promise<unknown> =>
  new Promise((resolve) => {
    client.refreshSlotsCache(resolve);
  });

const waits = new WeakMap<RedisClient, number>();

/** How many replicas must have a write over the connection before it is confirmed. */
export const replicasToWaitFor = (client: RedisClient): number => waits.get(client) ?? 0;

export const isCluster = (client: RedisClient): client is Cluster => client instanceof Cluster;

/** Of each connection since it served. */
const lastErrors = new WeakMap<EventEmitter, Error>();

/** Messages that follow from an earlier error. */
const consequences = new Set(['Connection is closed.', 'Failed to refresh slots cache.']);

/** Calls `hear` for a connection's errors that are causes; of a Cluster every node's count. */
export function onCause(client: EventEmitter, hear: (error: Error) => void): void {
  for (const name of ['error', 'node error'])
    client.on(name, (error: Error) => consequences.has(error.message) || hear(error));
}

/** Keeps the connection's last error for `whenReady`. @param client from its first moment on */
export function noteErrors(client: EventEmitter): void {
  onCause(client, (error) => lastErrors.set(client, error));
  client.on('ready', () => lastErrors.delete(client));
}

/** Replies by which Redis says that it cannot serve now; any other error reply is a defect of ours. */
const passingReplies = new Set([
  ...['OOM', 'LOADING', 'READONLY', 'MISCONF', 'BUSY', 'NOREPLICAS'],
  ...['MOVED', 'ASK', 'TRYAGAIN', 'MASTERDOWN', 'CLUSTERDOWN'],
  // A master that became a replica ends who waits for its replicas.
  'UNBLOCKED',
  // Alone: memory ran full with the last command. What is wrong with a command is replied before it.
  'EXECABORT',
]);

/**
 * Waits for commands. Whether one whose reply was lost was carried out is not known.
 * @throws ApiError UNAVAILABLE where Redis cannot be reached or cannot serve now; an error reply that is a defect of ours
 */
export async function whileRedisServes<Value>(commands: Promise<Value>): Promise<Value> {
  try {
    return await commands;
  } catch (error) {
    const code = codeOf(error);
    if (code !== null && !passingReplies.has(code)) throw error;
    throw unavailable('The state store is not available right now; try again with the same event_id', error);
  }
}

/** The first word of an error reply (Redis protocol); null for another error, such as a connection's own. */
export function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return null;
  return error.message.split(' ', 1)[0] ?? '';
}

/** The results of commands that are sent together. @throws the first one's error that failed */
export async function resultsOf(commands: ChainableCommander): Promise<unknown[]> {
  const replies = (await commands.exec()) ?? [];
  return replies.map(([error, result]) => {
    if (error !== null) throw error;
    return result;
  });
}

/** Resolves when the client can take commands; rejects after `timeoutMs`, and at once where waiting is of no use. */
export async function whenReady(client: RedisClient, timeoutMs: number): Promise<void> {
  if (client.status !== 'ready') await becomesReady(client, timeoutMs);
  if (isCluster(client)) await mastersTried(client);
}

/** Of each Cluster since it became ready. */
const tried = new WeakMap<Cluster, Promise<unknown>>();

/** A PING waits for a node's connection or its failure. Only once: a node that fails later must not hold up the others. */
function mastersTried(client: Cluster): Promise<unknown> {
  const before = tried.get(client);
  if (before !== undefined) return before;
  const pings = Promise.allSettled(client.nodes('master').map((node) => node.ping()));
  tried.set(client, pings);
  client.once('close', () => tried.delete(client));
  return pings;
}

function becomesReady(client: RedisClient, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      client.off('ready', ready);
      client.off('error', failed);
    };
    const ready = (): void => {
      end();
      resolve();
    };
    const refuse = (): void => {
      end();
      const cause = lastErrors.get(client);
      reject(new Error(`Redis did not answer within ${timeoutMs / 1000} s`, { cause }));
    };
    // A Cluster emits it where no node is left.
    const failed = (): void => {
      if (troubleOf(lastErrors.get(client)).isFinal) refuse();
    };
    const timer = setTimeout(refuse, timeoutMs);
    client.on('ready', ready);
    client.on('error', failed);
  });
}

/** Whether Redis can serve; rejects when it cannot be asked. Of a Cluster most nodes must be there, not all. */
export const answersPing = async (client: RedisClient): Promise<boolean> =>
  isCluster(client)
    ? String(await client.cluster('INFO')).includes('cluster_state:ok')
    : (await client.ping()) === 'PONG';
