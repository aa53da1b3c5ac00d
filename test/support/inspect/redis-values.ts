import type { Redis } from 'ioredis';

const commands: Readonly<Record<string, readonly [command: string, ...args: string[]]>> = {
  hash: ['HGETALL'],
  set: ['SMEMBERS'],
  list: ['LRANGE', '0', '-1'],
  zset: ['ZRANGE', '0', '-1', 'WITHSCORES'],
  stream: ['XRANGE', '-', '+'],
  string: ['GET'],
};

/** @returns the type and the values of a key: field, value, … of a hash; member, score, … of a sorted set; empty for a deleted key */
export async function readValues(redis: Redis, key: string): Promise<{ type: string; values: Buffer[] }> {
  const type = await redis.type(key);
  const [command, ...args] = commands[type] ?? [];
  if (command === undefined) return { type, values: [] };
  const reply = (await redis.callBuffer(command, key, ...args)) as Buffer | Buffer[] | null;
  return { type, values: [reply ?? []].flat(Number.POSITIVE_INFINITY) as Buffer[] };
}
