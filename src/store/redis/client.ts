import type { EventEmitter } from 'node:events';
import { type ChainableCommander, Cluster, Redis, type RedisOptions } from 'ioredis';
import { troubleOf } from '../../connection-trouble.js';
import { redisAddress } from '../../contracts/redis.js';
import { unavailable } from '../../errors.js';
import { connectCluster } from './cluster.js';

/**
 * Makes reading texts fast again: ioredis declares a class that extends String (VerbatimString). V8 then takes
 * String.prototype for one that is being set up, and keeps it as a dictionary until something is read through an object of it,
 * about ten times (Node 20, 22). Each length and charCodeAt of the thread was looked up: a tenth more an answer.
 * V8 learns of reads in a function, not of those of a module that is run once.
 */
function makeStringsFast(): void {
  const text = Object('') as string;
  for (let reads = 0; reads < 100; reads++) text.trim;
}
makeStringsFast();

/** A single node or a Cluster: everything above works on both. */
export type RedisClient = Redis | Cluster;

/** After this long without a reply a command counts as failed: the caller gets a 503 and may try again. */
export const commandTimeoutMs = 5000;
export const connectTimeoutMs = 5000;
const timeouts = {
  commandTimeout: commandTimeoutMs,
  connectTimeout: connectTimeoutMs,
  /** A connection over which nothing comes back is replaced: what is behind it may be gone without a word. */
  socketTimeout: 10_000,
};

/** No command is sent twice, for it may have been carried out: those in flight fail with their connection, and none is queued. */
const options = {
  ...timeouts,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (attempt: number) => Math.min(25 * 2 ** attempt, 250),
  // What moves the master behind one address does not always end connections to the one before.
  reconnectOnError: (error: Error) => codeOf(error) === 'READONLY',
} satisfies RedisOptions;

const { socketTimeout: _, ...withoutSocketTimeout } = options;
/**
 * Of a connection whose replies ioredis does not read (hot-connection.ts), which has a time-out of its own. While Redis loads,
 * ioredis asks again by a timer; that must end before it reconnects, or the new connection brings a reply that nobody waits for.
 */
export const hotOptions = {
  ...withoutSocketTimeout,
  protocol: 2,
  maxLoadingRetryTime: 25,
} satisfies RedisOptions;

/**
 * Connects to Redis and stays connected: reconnects for ever, with back-off.
 * @param url one `redis://` or `rediss://` URL, or several of a Cluster's nodes separated by commas
 * @param waitReplicas how many replicas must have a write before it is confirmed (replication.ts)
 */
export function connectRedis(url: string, waitReplicas = 0): RedisClient {
  const address = redisAddress(url);
  const [node] = address.nodes;
  const client =
    address.nodes.length === 1 ? new Redis(node as string, options) : connectCluster(address, timeouts);
  noteErrors(client);
  waits.set(client, waitReplicas);
  return client;
}

/** Beside the connections, because it goes wherever they go. */
const waits = new WeakMap<RedisClient, number>();

/** How many replicas must have a write over the connection before it is confirmed. */
export const replicasToWaitFor = (client: RedisClient): number => waits.get(client) ?? 0;

export const isCluster = (client: RedisClient): client is Cluster => client instanceof Cluster;

/** The last error of each connection since it served. */
const lastErrors = new WeakMap<EventEmitter, Error>();

/** Messages that follow from an earlier error. */
const consequences = new Set(['Connection is closed.', 'Failed to refresh slots cache.']);

/** Calls `hear` for a connection's errors that are causes; of a Cluster every node's count. */
export function onCause(client: EventEmitter, hear: (error: Error) => void): void {
  for (const name of ['error', 'node error'])
    client.on(name, (error: Error) => consequences.has(error.message) || hear(error));
}

/** @param client from its first moment on */
export function noteErrors(client: EventEmitter): void {
  onCause(client, (error) => lastErrors.set(client, error));
  client.on('ready', () => lastErrors.delete(client));
}

/** Replies by which Redis says that it cannot serve now; any other error reply is a defect of ours. */
const passingReplies = new Set([
  'OOM',
  'LOADING',
  'READONLY',
  'MISCONF',
  'BUSY',
  'TRYAGAIN',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'NOREPLICAS',
  // A master that became a replica ends who waits for its replicas.
  'UNBLOCKED',
  // Alone: memory ran full with the last command. What is wrong with a command is replied before it.
  'EXECABORT',
  'MOVED',
  'ASK',
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

/**
 * A Cluster is ready when it is known who its nodes are: a PING waits for a node's connection, or for its failure.
 * Only once: a node that fails later must not hold up what concerns the others.
 */
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
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      client.off('ready', ready);
      client.off('error', failed);
      settle();
    };
    const refuse = (): void => {
      const cause = lastErrors.get(client);
      reject(new Error(`Redis did not answer within ${timeoutMs / 1000} s`, { cause }));
    };
    const ready = (): void => end(resolve);
    // Of a Cluster heard where no node is left.
    const failed = (): void => {
      if (troubleOf(lastErrors.get(client)).isFinal) end(refuse);
    };
    const timer = setTimeout(() => end(refuse), timeoutMs);
    client.on('ready', ready);
    client.on('error', failed);
  });
}

/** Whether Redis can serve; rejects when it cannot be asked. Of a Cluster, most nodes must be there, not all. */
export const answersPing = async (client: RedisClient): Promise<boolean> =>
  isCluster(client)
    ? String(await client.cluster('INFO')).includes('cluster_state:ok')
    : (await client.ping()) === 'PONG';
