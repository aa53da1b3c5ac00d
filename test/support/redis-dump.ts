/** Everything of Redis that is to survive a rebuild, as text that can be compared. */
import type { Redis } from 'ioredis';
import type { RedisClient } from '../../src/store/client.js';

/** Ids wander between buckets as these grow; what counts is that each is there, with its answer. */
const bucketKey = /^(st:\{p\d+\}:i:)\d+$/;
/** Who answered a skill is kept in the order of arrival, which ClickHouse does not have. */
const rareKey = /\}:rare$/;
const inOrder = (entry: string): string => {
  const [skill = '', learners = ''] = entry.split(' ');
  return `${skill} ${(learners.match(/.{16}/g) ?? []).sort().join('')}`;
};
/** What is on its way, what ends by itself, and the number of buckets. */
const passing =
  /^(bull|st:(quota|ids|rebuild|audit|purged|erased:looked|v\d+:))|^\{bull|:(out|journal|forecasts)(:parked)?$|:(m\d*|i:n)$|:import:/;

/** @returns by key: the fields of a hash or the members of a set, with their scores, in order, the entries of a list as they stand */
export async function dumpRedis(client: RedisClient): Promise<Map<string, string[]>> {
  const dump = new Map<string, string[]>();
  const redis = client as Redis;
  for (const key of await keysOf(redis)) {
    if (passing.test(key)) continue;
    const name = key.replace(bucketKey, '$1*');
    const entries = await contentsOf(redis, key);
    dump.set(name, [...(dump.get(name) ?? []), ...(rareKey.test(key) ? entries.map(inOrder) : entries)]);
  }
  for (const [name, entries] of dump) if (!name.endsWith(':i:q') && !name.includes(':log:')) entries.sort();
  return new Map([...dump].filter(([, entries]) => entries.length > 0).sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function keysOf(redis: Redis): Promise<string[]> {
  const keys = new Set<string>();
  let cursor = '0';
  do {
    const [next, found] = await redis.scan(cursor, 'COUNT', 1000);
    for (const key of found) keys.add(key);
    cursor = next;
  } while (cursor !== '0');
  return [...keys];
}

async function contentsOf(redis: Redis, key: string): Promise<string[]> {
  const type = await redis.type(key);
  const commands: Record<string, string[]> = {
    hash: ['HGETALL', key],
    set: ['SMEMBERS', key],
    list: ['LRANGE', key, '0', '-1'],
    zset: ['ZRANGE', key, '0', '-1', 'WITHSCORES'],
    string: ['GET', key],
  };
  const [command, ...args] = commands[type] ?? [];
  if (command === undefined) throw new Error(`${key} is a ${type}`);
  const reply = (await redis.callBuffer(command, ...args)) as Buffer | Buffer[];
  const values = (Array.isArray(reply) ? reply : [reply]).map((value) => value.toString('hex'));
  const inPairs = type === 'hash' || type === 'zset';
  return inPairs ? values.flatMap((v, i) => (i % 2 === 0 ? [`${v} ${values[i + 1]}`] : [])) : values;
}
