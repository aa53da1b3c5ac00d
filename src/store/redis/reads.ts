import type { Redis } from 'ioredis';
import { groupBy, groupByPartition, splitIntoParts } from '../../lists.js';
import { isCluster, type RedisClient, resultsOf, whileRedisServes } from './client.js';

/** On a Cluster one call per partition, because a script may use only one slot. */
export async function perCall<Item extends { readonly partition: number }, Result>(
  client: RedisClient,
  items: readonly Item[],
  call: (group: readonly Item[]) => Promise<Result[]>,
): Promise<Result[]> {
  if (!isCluster(client)) return call(items);
  const results = new Map<Item, Result>();
  const callGroup = async (group: readonly Item[]): Promise<void> => {
    for (const [i, reply] of (await call(group)).entries()) results.set(group[i] as Item, reply);
  };
  await Promise.all([...groupByPartition(items).values()].map(callGroup));
  return items.map((item) => results.get(item) as Result);
}

const pageKeys = 1000;

/** A key may appear in two pages. */
export async function* scanKeys(
  client: RedisClient,
  pattern: string,
): AsyncGenerator<readonly [node: Redis, keys: readonly string[]]> {
  for (const node of isCluster(client) ? client.nodes('master') : [client]) {
    let cursor = '0';
    do {
      const [next, keys] = await whileRedisServes(node.scan(cursor, 'MATCH', pattern, 'COUNT', pageKeys));
      yield [node, [...new Set(keys)]];
      cursor = next;
    } while (cursor !== '0');
  }
}

type CommandLine = readonly [name: string, ...args: (string | number)[]];

/**
 * One write on a single node, because a write costs more than most commands. On a Cluster each command may
 * belong to another node.
 */
export async function repliesTo<Reply>(
  redis: RedisClient,
  commands: readonly CommandLine[],
): Promise<Reply[]> {
  const replies = isCluster(redis)
    ? whileRedisServes(Promise.all(commands.map(([name, ...args]) => redis.call(name, ...args))))
    : resultsOf(redis.pipeline(commands.map((line) => [...line])));
  return (await replies) as Reply[];
}

export const replyPerKey = <Reply>(redis: RedisClient, name: string, keys: readonly string[]) =>
  repliesTo<Reply>(
    redis,
    keys.map((key) => [name, key]),
  );

export const streamLengths = (redis: RedisClient, keys: readonly string[]) =>
  replyPerKey<number>(redis, 'xlen', keys);

export const removeEntries = (
  redis: RedisClient,
  entries: readonly { readonly source: string; readonly entry: string }[],
): Promise<unknown> =>
  repliesTo(
    redis,
    [...groupBy(entries, ({ source }) => source)].map(([source, own]) => [
      ...(['xdel', source] as const),
      ...own.map(({ entry }) => entry),
    ]),
  );

/** `fields`: names and values alternate. */
export type TextEntry = [id: string, fields: string[]];

/** Oldest first. 500 entries with a row each block Redis for less than 1 ms. */
export async function* streamPages(
  redis: RedisClient,
  key: string,
  { size = 500, from = '-', to = '+' } = {},
) {
  for (let next = from; ; ) {
    const page = await whileRedisServes(redis.xrange(key, next, to, 'COUNT', size));
    const last = page.at(-1);
    if (last !== undefined) yield page satisfies TextEntry[];
    if (last === undefined || page.length < size) return;
    next = `(${last[0]}`;
  }
}

export async function removeMatching(
  redis: RedisClient,
  key: string,
  isMeant: (id: string, fields: readonly string[]) => boolean,
): Promise<void> {
  for await (const page of streamPages(redis, key)) {
    const ids = page.filter(([id, fields]) => isMeant(id, fields)).map(([id]) => id);
    if (ids.length > 0) await whileRedisServes(redis.xdel(key, ...ids));
  }
}

/** Decoding a page blocks this thread for about 1 ms. */
const pageFields = 500;

/** Unordered; a field may appear twice. */
export async function* hashPages(client: RedisClient, key: string, size: number) {
  let cursor = '0';
  do {
    const [next, fields] = await whileRedisServes(client.hscan(key, cursor, 'COUNT', size));
    yield splitIntoParts(fields, 2) as [field: string, value: string][];
    cursor = next;
  } while (cursor !== '0');
}

export type OnUnreadable = (error: unknown, field: string, stored: string) => void;

export const refuseUnreadable: OnUnreadable = (error) => {
  throw error;
};

export async function readHash<Value>(
  client: RedisClient,
  key: string,
  decode: (field: string, text: string) => Value,
  onUnreadable: OnUnreadable = refuseUnreadable,
): Promise<Map<string, Value>> {
  const values = new Map<string, Value>();
  for await (const page of hashPages(client, key, pageFields))
    for (const [field, text] of page)
      try {
        values.set(field, decode(field, text));
      } catch (error) {
        onUnreadable(error, field, text);
      }
  return values;
}

export function fieldOf<Text extends string | Buffer>(fields: readonly Text[], name: string): Text | null {
  const at = fields.findIndex((field, i) => i % 2 === 0 && field.toString() === name);
  return at < 0 ? null : (fields[at + 1] as Text);
}
