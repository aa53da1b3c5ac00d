import type { Redis } from 'ioredis';
import { groupBy, groupByPartition, splitIntoParts } from '../../../lists.js';
import { executeAll, isCluster, mapRedisErrors, type RedisClient } from '../connection/client.js';

/** On a Cluster one call per partition, because a script may use only one slot. */
export async function callPerSlot<Item extends { readonly partition: number }, Result>(
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

const keysPerPage = 1000;

/** A key may appear in two pages. */
export async function* scanKeys(
  client: RedisClient,
  pattern: string,
): AsyncGenerator<readonly [node: Redis, keys: readonly string[]]> {
  for (const node of isCluster(client) ? client.nodes('master') : [client]) {
    let cursor = '0';
    do {
      const [next, keys] = await mapRedisErrors(node.scan(cursor, 'MATCH', pattern, 'COUNT', keysPerPage));
      yield [node, [...new Set(keys)]];
      cursor = next;
    } while (cursor !== '0');
  }
}

type RedisCommand = readonly [name: string, ...args: (string | number)[]];

/**
 * One write on a single node, because a write costs more than most commands. On a Cluster each command may
 * belong to another node.
 */
export async function sendCommands<Reply>(
  redis: RedisClient,
  commands: readonly RedisCommand[],
): Promise<Reply[]> {
  const replies = isCluster(redis)
    ? mapRedisErrors(Promise.all(commands.map(([name, ...args]) => redis.call(name, ...args))))
    : executeAll(redis.pipeline(commands.map((line) => [...line])));
  return (await replies) as Reply[];
}

export const sendPerKey = <Reply>(redis: RedisClient, name: string, keys: readonly string[]) =>
  sendCommands<Reply>(
    redis,
    keys.map((key) => [name, key]),
  );

export const fetchStreamLengths = (redis: RedisClient, keys: readonly string[]) =>
  sendPerKey<number>(redis, 'xlen', keys);

export const removeStreamEntries = (
  redis: RedisClient,
  entries: readonly { readonly source: string; readonly entry: string }[],
): Promise<unknown> =>
  sendCommands(
    redis,
    [...groupBy(entries, ({ source }) => source)].map(([source, own]) => [
      ...(['xdel', source] as const),
      ...own.map(({ entry }) => entry),
    ]),
  );

/** `fields`: names and values alternate. */
export type StreamEntry = [id: string, fields: string[]];

/** Oldest first. 500 entries with a row each block Redis for less than 1 ms. */
export async function* readStreamPages(
  redis: RedisClient,
  key: string,
  { size = 500, from = '-', to = '+' } = {},
) {
  for (let next = from; ; ) {
    const page = await mapRedisErrors(redis.xrange(key, next, to, 'COUNT', size));
    const last = page.at(-1);
    if (last !== undefined) yield page satisfies StreamEntry[];
    if (last === undefined || page.length < size) return;
    next = `(${last[0]}`;
  }
}

export async function removeMatchingEntries(
  redis: RedisClient,
  key: string,
  matches: (id: string, fields: readonly string[]) => boolean,
): Promise<void> {
  for await (const page of readStreamPages(redis, key)) {
    const ids = page.filter(([id, fields]) => matches(id, fields)).map(([id]) => id);
    if (ids.length > 0) await mapRedisErrors(redis.xdel(key, ...ids));
  }
}

/** Decoding a page blocks this thread for about 1 ms. */
const fieldsPerPage = 500;

/** Unordered; a field may appear twice. */
export async function* readHashPages(client: RedisClient, key: string, size: number) {
  let cursor = '0';
  do {
    const [next, fields] = await mapRedisErrors(client.hscan(key, cursor, 'COUNT', size));
    yield splitIntoParts(fields, 2) as [field: string, value: string][];
    cursor = next;
  } while (cursor !== '0');
}

export type UnreadableHandler = (error: unknown, field: string, stored: string) => void;

export const throwUnreadable: UnreadableHandler = (error) => {
  throw error;
};

export async function readHash<Value>(
  client: RedisClient,
  key: string,
  decode: (field: string, text: string) => Value,
  onUnreadable: UnreadableHandler = throwUnreadable,
): Promise<Map<string, Value>> {
  const values = new Map<string, Value>();
  for await (const page of readHashPages(client, key, fieldsPerPage))
    for (const [field, text] of page)
      try {
        values.set(field, decode(field, text));
      } catch (error) {
        onUnreadable(error, field, text);
      }
  return values;
}

export function findField<Text extends string | Buffer>(fields: readonly Text[], name: string): Text | null {
  const index = fields.findIndex((field, i) => i % 2 === 0 && field.toString() === name);
  return index < 0 ? null : (fields[index + 1] as Text);
}
