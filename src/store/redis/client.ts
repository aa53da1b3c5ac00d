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
 * ioredis has a class that extends String, which makes V8 (Node 20, 22) turn String.prototype into a dictionary: an answer
 * takes 10 % longer. About ten reads through an object with that prototype undo it.
 */
function makeStringsFast(): void {
  const text = Object('') as string;
  for (let reads = 0; reads < 100; reads++) text.trim;
}
makeStringsFast();

export type RedisClient = Redis | Cluster;

/** After this time without a reply, a command fails: the caller responds with 503. */
export const commandTimeoutMs = 5000;
export const connectTimeoutMs = 5000;
/** A connection without any data for this long is replaced. */
const socketTimeout = 10_000;

/** Never sends a command twice, because it may have been executed. No command waits for a connection. */
const options = {
  commandTimeout: commandTimeoutMs,
  connectTimeout: connectTimeoutMs,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (attempt: number) => Math.min(25 * 2 ** attempt, 250),
  // A failover behind one address does not always close connections to the old master.
  reconnectOnError: (error: Error) => codeOf(error) === 'READONLY',
} satisfies RedisOptions;

/**
 * For connections that bypass ioredis' reply parser (hot-connection.ts). While Redis loads, ioredis polls by a timer, which
 * must end before it reconnects: otherwise the new connection receives an unexpected reply.
 */
export const hotOptions = { ...options, protocol: 2, maxLoadingRetryTime: 25 } satisfies RedisOptions;

/**
 * Connects, and reconnects forever with back-off.
 * @param url one `redis://` or `rediss://` URL, or comma-separated nodes of a Cluster
 * @param waitReplicas number of replicas that must have a write before it is confirmed (replication.ts)
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

/** MOVED names a slot's master, but not while a node hangs, and never the replicas. */
const slotsRefreshMs = 5000;

/**
 * Follows only MOVED. ioredis would also repeat commands of lost connections, which may count an answer twice. It would follow
 * ASK to a node that receives a slot key by key, where a script might miss a learner and create a new one.
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
    // Connect to all nodes immediately, including replicas: no command may wait for a connection, and the ready check
    // is a command.
    enableOfflineQueue: false,
    enableReadyCheck: false,
    redisOptions: { commandTimeout, connectTimeout, socketTimeout, ...login, lazyConnect: false },
    dnsLookup: keepName,
  });
  // ioredis' own interval never ends if the connection is closed during a refresh.
  const timer = setInterval(() => {
    if (client.status === 'disconnecting' || client.status === 'end') clearInterval(timer);
    else if (client.status === 'ready') client.refreshSlotsCache();
  }, slotsRefreshMs);
  timer.unref();
  return client;
}

/** Resolves names for each connection: a certificate has the name, and addresses change. */
const keepName: NonNullable<ClusterOptions['dnsLookup']> = (name, found) => found(null, name);

/** The key's master (host:port) and its number of live replicas, as far as the client knows. Null without a known master. */
export function placeInCluster(client: Cluster, key: string) {
  const [master, ...others] = client.slots[new Command('get', [key]).getSlot()] ?? [];
  if (master === undefined) return null;
  return { master, replicas: others.filter((other) => other !== master).length };
}

/** Refreshes the slots. Resolves even if no node replies. */
export const renewPlaces = (client: Cluster): Promise<unknown> =>
  new Promise((resolve) => {
    client.refreshSlotsCache(resolve);
  });

const waits = new WeakMap<RedisClient, number>();

export const replicasToWaitFor = (client: RedisClient): number => waits.get(client) ?? 0;

export const isCluster = (client: RedisClient): client is Cluster => client instanceof Cluster;

/** Since the connection last served. */
const lastErrors = new WeakMap<EventEmitter, Error>();

/** Errors that follow from an earlier one. */
const consequences = new Set(['Connection is closed.', 'Failed to refresh slots cache.']);

/** Calls `hear` for root causes of connection errors, of every node of a Cluster. */
export function onCause(client: EventEmitter, hear: (error: Error) => void): void {
  for (const name of ['error', 'node error'])
    client.on(name, (error: Error) => consequences.has(error.message) || hear(error));
}

/** Records the last error for `whenReady`. @param client from its start */
export function noteErrors(client: EventEmitter): void {
  onCause(client, (error) => lastErrors.set(client, error));
  client.on('ready', () => lastErrors.delete(client));
}

/** Redis cannot serve now. Any other error reply is our defect. */
const passingReplies = new Set([
  ...['OOM', 'LOADING', 'READONLY', 'MISCONF', 'BUSY', 'NOREPLICAS'],
  ...['MOVED', 'ASK', 'TRYAGAIN', 'MASTERDOWN', 'CLUSTERDOWN'],
  // A master that became a replica unblocks clients that wait for replicas.
  'UNBLOCKED',
  // Memory became full with the last command. Invalid commands are rejected before it.
  'EXECABORT',
]);

/**
 * After a lost reply, it is unknown whether the command was executed.
 * @throws ApiError UNAVAILABLE if Redis is unreachable or cannot serve now; other error replies unchanged. Functions of
 * src/store that serve requests throw the same errors
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

/** First word of an error reply (Redis protocol); null for other errors. */
export function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return null;
  return error.message.split(' ', 1)[0] ?? '';
}

/** Results of commands that are sent together. @throws ApiError UNAVAILABLE; the first error reply */
export const resultsOf = (commands: ChainableCommander): Promise<unknown[]> =>
  whileRedisServes(
    commands.exec().then((replies) =>
      (replies ?? []).map(([error, result]) => {
        if (error !== null) throw error;
        return result;
      }),
    ),
  );

/** Resolves when the client can send commands. Rejects after `timeoutMs`, and immediately if waiting is pointless. */
export async function whenReady(client: RedisClient, timeoutMs: number): Promise<void> {
  if (client.status !== 'ready') await becomesReady(client, timeoutMs);
  if (isCluster(client)) await mastersTried(client);
}

/** Since the Cluster became ready. */
const tried = new WeakMap<Cluster, Promise<unknown>>();

/** PING waits for a node's connection or its failure. Only once: a node that fails later must not delay the others. */
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
    // A Cluster without any node left emits this.
    const failed = (): void => {
      if (troubleOf(lastErrors.get(client)).isFinal) refuse();
    };
    const timer = setTimeout(refuse, timeoutMs);
    client.on('ready', ready);
    client.on('error', failed);
  });
}

/** Whether Redis can serve. A Cluster needs most of its nodes. Rejects if Redis does not reply. */
export const answersPing = async (client: RedisClient): Promise<boolean> =>
  isCluster(client)
    ? String(await client.cluster('INFO')).includes('cluster_state:ok')
    : (await client.ping()) === 'PONG';
