/** Dumps the Redis keys that a rebuild restores, as comparable text. */
import type { Redis } from 'ioredis';
import { ledgerField } from '../../../src/store/learners/event-ids.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';

const idsKey = /^st:\{p\d+\}:e:/;
/** A rebuild writes the ids of retracted answers last, so the dump contains entries and counts without their order. */
function idsIn(fields: readonly string[]): string[] {
  return fields.flatMap((entry) => {
    const [field = '', value = ''] = entry.split(' ');
    const isLedger = Buffer.from(field, 'hex').toString() === ledgerField;
    return isLedger ? `count ${value.slice(0, 8)}` : (value.match(/.{64}/g) ?? []);
  });
}
/** Redis lists the learners of a skill in the order of arrival. ClickHouse does not store this order. */
const rareKey = /\}:rare$/;
const inOrder = (entry: string): string => {
  const [skill = '', learners = ''] = entry.split(' ');
  return `${skill} ${(learners.match(/.{16}/g) ?? []).sort().join('')}`;
};
/** Keys of data in flight, and keys that expire. */
const passing =
  /^(bull|st:(quota|ids|rebuild|audit|purged|erased:looked|v\d+:))|^\{bull|:(out|journal|forecasts)(:parked|:rows)?$|:events$|:goal:(checks|alerts)$|:m[\d.]*$|:import:/;

/** @returns entries by key: sorted for hashes and sets, in stored order for lists */
export async function dumpRedis(client: RedisClient): Promise<Map<string, string[]>> {
  const dump = new Map<string, string[]>();
  const redis = client as Redis;
  for (const key of await keysOf(redis)) {
    if (passing.test(key)) continue;
    const entries = await contentsOf(redis, key);
    if (idsKey.test(key)) dump.set(key, idsIn(entries));
    else dump.set(key, rareKey.test(key) ? entries.map(inOrder) : entries);
  }
  for (const [name, entries] of dump) if (!name.includes(':log:')) entries.sort();
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
