import { Cluster, type ClusterOptions, Command, type CommonRedisOptions } from 'ioredis';
import type { RedisAddress } from '../../contracts/redis.js';

/** A node says where a slot is (MOVED), but not while it hangs, and none names its replicas. */
const slotsRefreshMs = 5000;

/**
 * Follows MOVED alone. ioredis would also repeat a command whose connection was lost: it may have been carried out, and would
 * count twice. And it would follow ASK to the node that a slot is moving to key by key: there a script finds nothing of a
 * learner yet and would begin a new one. Both end as 503.
 */
class CarefulCluster extends Cluster {
  override handleError(...[error, ttl, handlers]: Parameters<Cluster['handleError']>): void {
    if (error.message.startsWith('MOVED ')) super.handleError(error, ttl, handlers);
    else handlers.defaults();
  }
}

/** @param timeouts of each node's connection */
export function connectCluster(
  { nodes, login }: RedisAddress,
  timeouts: Pick<CommonRedisOptions, 'commandTimeout' | 'connectTimeout' | 'socketTimeout'>,
): Cluster {
  const client = new CarefulCluster([...nodes], {
    // A command must not wait for a connection that is being made; all are made at once, to replicas too. The ready check
    // would be such a command, and start everything again.
    enableOfflineQueue: false,
    enableReadyCheck: false,
    redisOptions: { ...timeouts, ...login, lazyConnect: false },
    dnsLookup: keepName,
  });
  refreshSlots(client);
  return client;
}

/**
 * Where a key is, as far as the client knows: its master (host:port) and the number of replicas that the Cluster does not
 * hold for dead, for it does not list those. Null where no node is known to have it.
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
