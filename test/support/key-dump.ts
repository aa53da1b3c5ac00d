/** Keys of Redis by what they hold, which any version of Redis takes; every text as base64. */
import type { Redis } from 'ioredis';
import type { RedisClient } from '../../src/store/redis/client.js';

export interface DumpedKey {
  readonly key: string;
  readonly type: 'string' | 'hash' | 'list' | 'set' | 'stream';
  /** In turn what the commands take that write them: field and value, member, id and fields. */
  readonly values: readonly (string | readonly string[])[];
}

const encode = (value: Buffer): string => value.toString('base64');
const decode = (text: string): Buffer => Buffer.from(text, 'base64');

/** Not the keys of the API and what is counted of them. */
const left = /^st:(keys|quota)/;

/** All keys of the service, in their order. @throws TypeError for a type that is not dumped yet */
export async function dumpKeys(redis: RedisClient): Promise<DumpedKey[]> {
  const keys = (await redis.keys('st:*')).filter((key) => !left.test(key)).sort();
  return Promise.all(keys.map((key) => dumpKey(redis as Redis, key)));
}

async function dumpKey(redis: Redis, key: string): Promise<DumpedKey> {
  const type = (await redis.type(key)) as DumpedKey['type'];
  const readers: Record<DumpedKey['type'], () => Promise<DumpedKey['values']>> = {
    string: async () => [encode((await redis.getBuffer(key)) as Buffer)],
    hash: async () => ((await redis.callBuffer('HGETALL', key)) as Buffer[]).map(encode),
    list: async () => (await redis.lrangeBuffer(key, 0, -1)).map(encode),
    set: async () => (await redis.smembersBuffer(key)).map(encode),
    stream: async () =>
      (await redis.xrangeBuffer(key, '-', '+')).map(([id, fields]) => [encode(id), ...fields.map(encode)]),
  };
  return { key, type, values: await readers[type]() };
}

/** Writes dumped keys as they were. */
export async function loadKeys(redis: RedisClient, keys: readonly DumpedKey[]): Promise<void> {
  for (const { key, type, values } of keys) {
    const flat = values.flat().map(decode);
    if (type === 'string') await redis.set(key, flat[0] as Buffer);
    else if (type === 'hash') await redis.hset(key, ...flat);
    else if (type === 'list') await redis.rpush(key, ...flat);
    else if (type === 'set') await redis.sadd(key, ...flat);
    else
      for (const entry of values)
        await redis.xadd(key, ...([entry].flat().map(decode) as [Buffer, Buffer, Buffer]));
  }
}
