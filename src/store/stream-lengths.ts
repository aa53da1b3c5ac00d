import { isCluster, type RedisClient, resultsOf } from './client.js';

/** A pipeline on one server; on a Cluster, which refuses pipelines over several slots, command by command. */
export async function streamLengths(redis: RedisClient, keys: readonly string[]): Promise<number[]> {
  if (isCluster(redis)) return Promise.all(keys.map((key) => redis.xlen(key)));
  const pipeline = redis.pipeline();
  for (const key of keys) pipeline.xlen(key);
  return (await resultsOf(pipeline)).map(Number);
}
