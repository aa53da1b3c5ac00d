import type { EventEmitter } from 'node:events';
import {
  type ChainableCommander,
  Cluster,
  type ClusterOptions,
  Command,
  Redis,
  type RedisOptions,
} from 'ioredis';
import { describeConnectionError } from '../../../connection-problem.js';
import { parseRedisAddress, type RedisAddress } from '../../../contracts/settings/redis-settings.js';
import { unavailable } from '../../../errors.js';

/**
 * A class of ioredis extends String, which makes String.prototype slow in V8 (Node 20, 22): an answer takes
 * 10 % longer. About ten reads through a String object undo this.
 */
function restoreFastStrings(): void {
  const text = Object('') as string;
  for (let reads = 0; reads < 100; reads++) text.trim;
}
restoreFastStrings();

export type RedisClient = Redis | Cluster;

export const commandTimeoutMs = 5000;
export const connectTimeoutMs = 5000;
const socketTimeoutMs = 10_000;

/** Sends no command twice, because Redis may have executed it. No command waits for a connection. */
const baseOptions = {
  commandTimeout: commandTimeoutMs,
  connectTimeout: connectTimeoutMs,
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  retryStrategy: (attempt: number) => Math.min(25 * 2 ** attempt, 250),
  // A failover behind one address does not always close connections to the old master.
  reconnectOnError: (error: Error) => parseErrorCode(error) === 'READONLY',
} satisfies RedisOptions;

/**
 * For connections that bypass ioredis' parser. The timer of ioredis for a loading Redis must end before a
 * reconnect, which otherwise receives an unexpected reply.
 */
export const hotConnectionOptions = {
  ...baseOptions,
  protocol: 2,
  maxLoadingRetryTime: 25,
} satisfies RedisOptions;

/**
 * @param url one `redis://` or `rediss://` URL, or comma-separated Cluster nodes
 * @param waitReplicas replicas that must confirm a write
 */
export function connectRedis(url: string, waitReplicas = 0): RedisClient {
  const address = parseRedisAddress(url);
  const [node] = address.nodes;
  const isSingle = address.nodes.length === 1;
  const client = isSingle
    ? new Redis(node as string, { ...baseOptions, socketTimeout: socketTimeoutMs })
    : connectCluster(address);
  recordLastError(client);
  requiredReplicas.set(client, waitReplicas);
  return client;
}

/** A node that hangs sends no MOVED, and MOVED never names replicas. */
const slotRefreshMs = 5000;

/**
 * ioredis would also resend commands of lost connections, which may count an answer twice. It would follow
 * ASK to a node that still imports the slot, where a script may miss a learner.
 */
class MovedOnlyCluster extends Cluster {
  override handleError(...[error, ttl, handlers]: Parameters<Cluster['handleError']>): void {
    if (error.message.startsWith('MOVED ')) super.handleError(error, ttl, handlers);
    else handlers.defaults();
  }
}

function connectCluster({ nodes, login }: RedisAddress): Cluster {
  const { commandTimeout, connectTimeout } = baseOptions;
  const client = new MovedOnlyCluster([...nodes], {
    // Connects to all nodes immediately and without the ready check: no command may wait for a connection.
    enableOfflineQueue: false,
    enableReadyCheck: false,
    redisOptions: {
      commandTimeout,
      connectTimeout,
      socketTimeout: socketTimeoutMs,
      ...login,
      lazyConnect: false,
    },
    dnsLookup: skipDnsLookup,
  });
  // ioredis' interval never ends if the connection closes during a refresh.
  const timer = setInterval(() => {
    if (client.status === 'disconnecting' || client.status === 'end') clearInterval(timer);
    else if (client.status === 'ready') client.refreshSlotsCache();
  }, slotRefreshMs);
  timer.unref();
  return client;
}

/** TLS certificates contain host names, and addresses change. */
const skipDnsLookup: NonNullable<ClusterOptions['dnsLookup']> = (name, found) => found(null, name);

export function findSlotMaster(client: Cluster, key: string) {
  const [master, ...others] = client.slots[new Command('get', [key]).getSlot()] ?? [];
  if (master === undefined) return null;
  return { master, replicas: others.filter((other) => other !== master).length };
}

export const refreshSlots = (client: Cluster): Promise<unknown> =>
  new Promise((resolve) => {
    client.refreshSlotsCache(resolve);
  });

const requiredReplicas = new WeakMap<RedisClient, number>();

export const getRequiredReplicas = (client: RedisClient): number => requiredReplicas.get(client) ?? 0;

export const isCluster = (client: RedisClient): client is Cluster => client instanceof Cluster;

const lastErrors = new WeakMap<EventEmitter, Error>();

const followUpErrors = new Set(['Connection is closed.', 'Failed to refresh slots cache.']);

/** Skips errors that follow from earlier ones. */
export function onRootCause(client: EventEmitter, listener: (error: Error) => void): void {
  for (const name of ['error', 'node error'])
    client.on(name, (error: Error) => followUpErrors.has(error.message) || listener(error));
}

export function recordLastError(client: EventEmitter): void {
  onRootCause(client, (error) => lastErrors.set(client, error));
  client.on('ready', () => lastErrors.delete(client));
}

/** Redis cannot serve now. Any other error reply is a defect in this code. */
const temporaryErrorCodes = new Set([
  ...['OOM', 'LOADING', 'READONLY', 'MISCONF', 'BUSY', 'NOREPLICAS'],
  ...['MOVED', 'ASK', 'TRYAGAIN', 'MASTERDOWN', 'CLUSTERDOWN'],
  // A master that becomes a replica unblocks clients that wait for replicas.
  'UNBLOCKED',
  // Redis rejected EXEC because its memory is full. Invalid commands fail earlier.
  'EXECABORT',
]);

/**
 * After a lost reply, it is unknown whether Redis executed the command. Store functions for requests throw
 * the same errors.
 * @throws ApiError UNAVAILABLE if Redis cannot serve
 */
export async function mapRedisErrors<Value>(commands: Promise<Value>): Promise<Value> {
  try {
    return await commands;
  } catch (error) {
    const code = parseErrorCode(error);
    if (code !== null && !temporaryErrorCodes.has(code)) throw error;
    throw unavailable('Learner state is temporarily unavailable; retry with the same event_id.', error);
  }
}

export function parseErrorCode(error: unknown): string | null {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return null;
  return error.message.split(' ', 1)[0] ?? '';
}

/** @throws ApiError UNAVAILABLE, or the first error reply */
export const executeAll = (commands: ChainableCommander): Promise<unknown[]> =>
  mapRedisErrors(
    commands.exec().then((replies) =>
      (replies ?? []).map(([error, result]) => {
        if (error !== null) throw error;
        return result;
      }),
    ),
  );

/** Rejects after `timeoutMs`, or immediately after a permanent connection error. */
export async function waitUntilReady(client: RedisClient, timeoutMs: number): Promise<void> {
  if (client.status !== 'ready') await waitForReadyEvent(client, timeoutMs);
  if (isCluster(client)) await pingMasters(client);
}

const pingedMasters = new WeakMap<Cluster, Promise<unknown>>();

/**
 * A PING waits until its node connects or fails. Sent only once, so that a later failure delays no other
 * node.
 */
function pingMasters(client: Cluster): Promise<unknown> {
  const started = pingedMasters.get(client);
  if (started !== undefined) return started;
  const pings = Promise.allSettled(client.nodes('master').map((node) => node.ping()));
  pingedMasters.set(client, pings);
  client.once('close', () => pingedMasters.delete(client));
  return pings;
}

function waitForReadyEvent(client: RedisClient, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const cleanUp = (): void => {
      clearTimeout(timer);
      client.off('ready', onReady);
      client.off('error', onError);
    };
    const onReady = (): void => {
      cleanUp();
      resolve();
    };
    const fail = (): void => {
      cleanUp();
      const cause = lastErrors.get(client);
      reject(new Error(`Redis did not respond within ${timeoutMs / 1000} s`, { cause }));
    };
    const onError = (): void => {
      if (describeConnectionError(lastErrors.get(client)).isPermanent) fail();
    };
    const timer = setTimeout(fail, timeoutMs);
    client.on('ready', onReady);
    client.on('error', onError);
  });
}

/** Rejects if Redis does not reply. A Cluster needs most of its nodes. */
export const isRedisAvailable = async (client: RedisClient): Promise<boolean> =>
  isCluster(client)
    ? String(await client.cluster('INFO')).includes('cluster_state:ok')
    : (await client.ping()) === 'PONG';
