/** A deployment as another version left it: with its name in the markers, and in the note of how learners are kept. */
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { markerKey, metaKey, stateVersion } from '../../../src/store/redis/keys.js';

export const keptBefore = '4.1';

/** Makes today's deployment one of the version before. */
export async function makeOlder(redis: RedisClient, kept = keptBefore): Promise<void> {
  const partitions = Number(await redis.hget(metaKey, 'partitions'));
  for (let partition = 0; partition < partitions; partition++)
    await redis.rename(markerKey(partition, stateVersion), markerKey(partition, kept));
  await redis.hset(metaKey, 'model_version', kept);
}
