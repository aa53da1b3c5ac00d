import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { markerKey, metaKey, stateVersion } from '../../../src/store/redis/keys.js';

export const keptBefore = '4.1';

/** Marks the deployment as filled by another version of the service. */
export async function makeOlder(redis: RedisClient, kept = keptBefore): Promise<void> {
  const partitions = Number(await redis.hget(metaKey, 'partitions'));
  for (let partition = 0; partition < partitions; partition++)
    await redis.rename(markerKey(partition, stateVersion), markerKey(partition, kept));
  await redis.hset(metaKey, 'model_version', kept);
}
