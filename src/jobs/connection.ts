import { Cluster, Redis } from 'ioredis';
import { redisAddress } from '../contracts/redis-address.js';
import type { Logger } from '../telemetry.js';

/**
 * A connection over which nothing comes back is given up for another: what is behind it may have gone without a word,
 * and a node of a Cluster that hangs does not say who its successor is. Longer than BullMQ lets a command block (10 s).
 */
const socketTimeoutMs = 15_000;
/** BullMQ wants commands to wait for a reconnect, its workers block on the connection. */
const options = { maxRetriesPerRequest: null, socketTimeout: socketTimeoutMs };
const retryDelay = (attempt: number): number => Math.min(50 * 2 ** attempt, 1000);

/**
 * Connection for the queues, which BullMQ duplicates where it blocks; whoever connects disconnects.
 *
 * @param stopped once true, a lost connection is not made again: BullMQ waits for a reply to its farewell, and with
 *   Redis away it would wait for ever
 * @param url one `redis://` or `rediss://` URL, or several of a Cluster's nodes separated by commas
 */
export function connectQueues(url: string, logger: Logger, stopped: () => boolean): Redis | Cluster {
  const retryStrategy = (attempt: number): number | null => (stopped() ? null : retryDelay(attempt));
  const { nodes, login } = redisAddress(url);
  const client =
    nodes.length > 1
      ? new Cluster([...nodes], {
          redisOptions: { ...options, ...login },
          clusterRetryStrategy: retryStrategy,
          dnsLookup: (name, found) => found(null, name),
        })
      : new Redis(nodes[0] as string, { ...options, retryStrategy });
  client.on('error', (error: Error) => logger.debug({ err: error }, 'connection of the queues'));
  return client;
}
