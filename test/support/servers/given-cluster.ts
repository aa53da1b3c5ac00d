/** full/cluster.test.ts runs other test files on a Redis Cluster. */
import type { Cluster } from 'ioredis';
import { connectRedis, waitUntilReady } from '../../../src/store/redis/connection/client.js';

export const givenClusterName = 'TEST_REDIS_CLUSTER';

/** URL of the Cluster for this test file; undefined: the file starts a Redis. */
export const givenCluster = process.env[givenClusterName];

/** Deletes all data of the given Cluster. @returns its URL */
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
