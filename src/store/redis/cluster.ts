/** A Redis Cluster as the state store wants it. */
import { Cluster, type ClusterOptions, Command } from 'ioredis';
import type { RedisAddress } from '../../contracts/redis-address.js';

/**
 * How often a client asks where the slots are, in milliseconds. Mostly a node says so by itself (MOVED), but one that
 * hangs says nothing, and nobody tells which replicas are there.
 */
const slotsRefreshMs = 5000;

/**
 * Follows a node that says where a slot lives now, and repeats nothing else.
 *
 * ioredis would also send a command again whose connection was lost: it may have been carried out, and counting an
 * answer or a request again is wrong. And it would follow to the node that a slot is moving to key by key: there a
 * script finds nothing of a learner yet and would begin a new one. Both fail here and are told as 503.
 */
class CarefulCluster extends Cluster {
  override handleError(...[error, ttl, handlers]: Parameters<Cluster['handleError']>): void {
    if (error.message.startsWith('MOVED ')) super.handleError(error, ttl, handlers);
    else handlers.defaults();
  }
}

export interface Timeouts {
  readonly commandTimeout: number;
  readonly connectTimeout: number;
  readonly socketTimeout: number;
}

/** @param timeouts of each node's connection, in milliseconds */
export function connectCluster({ nodes, login }: RedisAddress, timeouts: Timeouts): Cluster {
  const client = new CarefulCluster([...nodes], {
    // A command must not wait for a connection that is being made; all are made at once, to replicas too. The check
    // would be such a command, and start everything anew.
    enableOfflineQueue: false,
    enableReadyCheck: false,
    redisOptions: { ...timeouts, ...login, lazyConnect: false },
    dnsLookup: keepName,
  });
  refreshSlots(client);
  return client;
}

/** Where a key is, as far as the client knows. */
export interface ClusterPlace {
  /** Host and port, with a colon between them. */
  readonly master: string;
  /** How many replicas its master has that the Cluster does not hold for dead: it does not list those. */
  readonly replicas: number;
}

/** Null where nobody is known to have the key. */
export function placeInCluster(client: Cluster, key: string): ClusterPlace | null {
  const [master, ...others] = client.slots[new Command('get', [key]).getSlot()] ?? [];
  if (master === undefined) return null;
  return { master, replicas: others.filter((other) => other !== master).length };
}

/** Asks a node where the slots are; resolves also where none tells. */
export const renewPlaces = (client: Cluster): Promise<unknown> =>
  new Promise((resolve) => {
    client.refreshSlotsCache(resolve);
  });

/** ioredis' own interval goes on for ever where the connection is ended in the middle of a refresh. */
function refreshSlots(client: Cluster): void {
  const timer = setInterval(() => {
    if (client.status === 'disconnecting' || client.status === 'end') clearInterval(timer);
    else if (client.status === 'ready') client.refreshSlotsCache();
  }, slotsRefreshMs);
  timer.unref();
}

/** Names are looked up when a connection is made, not before: a certificate has the name, and addresses change. */
const keepName: NonNullable<ClusterOptions['dnsLookup']> = (name, found) => found(null, name);
