import type { RedisClient } from '../../../src/store/redis/connection/client.js';

/** All keys and values in Redis as one text. */
export async function allTexts(redis: RedisClient): Promise<string> {
  const texts: string[] = [];
  for (const name of await redis.keys('*')) texts.push(name, await textOf(redis, name));
  return texts.join('\n');
}

async function textOf(redis: RedisClient, name: string): Promise<string> {
  switch (await redis.type(name)) {
    case 'string':
      return (await redis.get(name)) ?? '';
    case 'hash':
      return JSON.stringify(await redis.hgetall(name));
    case 'stream':
      return JSON.stringify(await redis.xrange(name, '-', '+'));
    case 'list':
      return JSON.stringify(await redis.lrange(name, 0, -1));
    case 'set':
      return JSON.stringify(await redis.smembers(name));
    case 'zset':
      return JSON.stringify(await redis.zrange(name, '0', '-1'));
    default:
      // Deleted in the meantime.
      return '';
  }
}
