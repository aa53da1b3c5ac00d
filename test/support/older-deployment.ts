/** Deployments as earlier versions left them: their names for the markers, and their notes of how learners are kept. */
import { randomBytes } from 'node:crypto';
import { answerBytes } from '../../src/store/learners/event-ids.js';
import type { RedisClient } from '../../src/store/redis/client.js';
import { notedKept } from '../../src/store/redis/deployment.js';
import {
  keptNow,
  type LearnersKept,
  markerKey,
  metaKey,
  unnotedLayout,
  unnotedVersion,
} from '../../src/store/redis/keys.js';

/** Neither its formulas nor its layout were noted. */
export const keptBefore: LearnersKept = { version: unnotedVersion, layout: unnotedLayout };
/** Today's formulas, with event ids that stand with their partition. */
export const keptInFirstLayout: LearnersKept = { ...keptNow, layout: unnotedLayout };

async function move(redis: RedisClient, from: LearnersKept, to: LearnersKept): Promise<void> {
  const partitions = Number(await redis.hget(metaKey, 'partitions'));
  for (let partition = 0; partition < partitions; partition++)
    await redis.rename(markerKey(partition, from), markerKey(partition, to));
}

/** Makes today's deployment one of the version before. */
export async function makeOlder(redis: RedisClient): Promise<void> {
  await redis.hdel(metaKey, 'model_version');
  await move(redis, keptNow, keptBefore);
}

const idHashBytes = 10;

/** Makes today's deployment one of the same formulas in the layout before, with event ids as they stood then. */
export async function makeFirstLayout(redis: RedisClient): Promise<void> {
  await redis.hset(metaKey, 'model_version', keptNow.version);
  await move(redis, keptNow, keptInFirstLayout);
  for (const key of await redis.keys('st:{p*}:e:*')) {
    await redis.del(key);
    const ids = `${key.slice(0, key.indexOf('}') + 1)}:i`;
    const id = randomBytes(idHashBytes);
    await redis.hset(`${ids}:0`, id, randomBytes(answerBytes));
    await redis.rpush(`${ids}:q`, id);
    await redis.set(`${ids}:n`, 1);
  }
}

/** The reverse of `makeOlder`: this version serves it, as the version before would. */
export async function makeCurrent(redis: RedisClient): Promise<void> {
  await move(redis, keptBefore, keptNow);
  await redis.hset(metaKey, notedKept);
}
