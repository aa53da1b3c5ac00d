/** Tests run on a Redis Cluster instead of servers of their own where full/cluster.test.ts says so. */
import type { Cluster } from 'ioredis';
import { connectRedis, waitUntilReady } from '../../../src/store/redis/connection/client.js';

/** Name of the environment variable with the Cluster's URL. */
export const givenClusterName = 'TEST_REDIS_CLUSTER';

/** Its URL; undefined where none is given. */
export const givenCluster = process.env[givenClusterName];

/** The URL of the Cluster to use, emptied; null where none is given. */
export async function emptiedCluster(): Promise<string | null> {
  if (givenCluster === undefined) return null;
  const client = connectRedis(givenCluster) as Cluster;
  try {
    await waitUntilReady(client, 10_000);
    await Promise.all(client.nodes('master').map((node) => node.flushall()));
  } finally {
    client.disconnect();
  }
  return givenCluster;
}
