/** Deployments as the version before left them: its name for the markers, and no note of its formulas. */
import { modelVersion } from '../../src/domain/params.js';
import type { RedisClient } from '../../src/store/client.js';
import { markerKey, metaKey, unnotedVersion } from '../../src/store/keys.js';

const move = async (redis: RedisClient, from: number, to: number): Promise<void> => {
  const partitions = Number(await redis.hget(metaKey, 'partitions'));
  for (let partition = 0; partition < partitions; partition++)
    await redis.rename(markerKey(partition, from), markerKey(partition, to));
};

/** Makes today's deployment one of the version before. */
export async function makeOlder(redis: RedisClient): Promise<void> {
  await redis.hdel(metaKey, 'model_version');
  await move(redis, modelVersion, unnotedVersion);
}

/** The reverse: this version serves it, as the version before would. */
export async function makeCurrent(redis: RedisClient): Promise<void> {
  await move(redis, unnotedVersion, modelVersion);
  await redis.hset(metaKey, 'model_version', modelVersion);
}
