/** Dumps the Redis keys that a rebuild restores, as comparable text. */
import type { Redis } from 'ioredis';
import { distinct } from '../../../src/lists.js';
import { ledgerField } from '../../../src/store/learners/event-ids.js';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { listed } from '../listed.js';
import { readValues } from './redis-values.js';

const idsKey = /^st:\{p\d+\}:e:/;
/** A rebuild writes the ids of retracted answers last, so the dump contains ids with their results, and counts, without their order. */
function idsIn(fields: readonly string[]): string[] {
  return fields.flatMap((entry) => {
    const [field = '', value = ''] = entry.split(' ');
    const isLedger = Buffer.from(field, 'hex').toString() === ledgerField;
    return isLedger ? `count ${value.slice(0, 8)}` : (value.match(/.{64}(f{16}.{48})*/g) ?? []);
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
  /^(bull|st:(quota|ids|rebuild|audit|keys:used|minutes|\{activity|purged|erased:looked|v\d+:))|^\{bull|:(out|journal|forecasts)(:parked|:rows)?$|:events$|:goal:(checks|alerts)$|:m[\d.]*$|:import:/;

/** @returns entries by key: sorted for hashes and sets, in stored order for lists */
export async function dumpRedis(client: RedisClient): Promise<Map<string, string[]>> {
  const dump = new Map<string, string[]>();
  const redis = client as Redis;
  const scanned = await listed<string[]>(redis.scanStream({ count: 1000 }));
  for (const key of distinct(scanned.flat())) {
    if (passing.test(key)) continue;
    const entries = await contentsOf(redis, key);
    if (idsKey.test(key)) dump.set(key, idsIn(entries));
    else dump.set(key, rareKey.test(key) ? entries.map(inOrder) : entries);
  }
  for (const [name, entries] of dump) if (!name.includes(':log:')) entries.sort();
  return new Map([...dump].filter(([, entries]) => entries.length > 0).sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function contentsOf(redis: Redis, key: string): Promise<string[]> {
  const { type, values } = await readValues(redis, key);
  if (type === 'stream') throw new Error(`${key} is a stream`);
  const texts = values.map((value) => value.toString('hex'));
  const inPairs = type === 'hash' || type === 'zset';
  return inPairs ? texts.flatMap((v, i) => (i % 2 === 0 ? [`${v} ${texts[i + 1]}`] : [])) : texts;
}
