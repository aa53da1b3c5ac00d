/** Streams of Redis and what stands beside them, whatever they hold. */
import { isCluster, type RedisClient, resultsOf } from './client.js';

/** A pipeline on one server; on a Cluster, which refuses pipelines over several slots, command by command. */
export async function streamLengths(redis: RedisClient, keys: readonly string[]): Promise<number[]> {
  if (isCluster(redis)) return Promise.all(keys.map((key) => redis.xlen(key)));
  const pipeline = redis.pipeline();
  for (const key of keys) pipeline.xlen(key);
  return (await resultsOf(pipeline)).map(Number);
}

/** In one command on one server; on a Cluster, where each may have another slot, one by one. */
export const textsOf = (redis: RedisClient, keys: readonly string[]): Promise<(string | null)[]> =>
  isCluster(redis) ? Promise.all(keys.map((key) => redis.get(key))) : redis.mget(...keys);

/** Names and values of the fields, in turn. */
type TextEntry = [id: string, fields: string[]];

/**
 * The entries of a stream, oldest first, a page at a time.
 *
 * @param size of a page
 * @param read gives the first of the entries from a place on
 */
export async function* streamPages(
  size: number,
  read: (from: string, size: number) => Promise<TextEntry[]>,
): AsyncGenerator<TextEntry[]> {
  for (let from = '-'; ; ) {
    const page = await read(from, size);
    const last = page.at(-1);
    if (last !== undefined) yield page;
    if (last === undefined || page.length < size) return;
    from = `(${last[0]}`;
  }
}

/** By its name: only what is not ours has other fields, or has them in another order. */
export function fieldOf<Text extends string | Buffer>(fields: readonly Text[], name: string): Text | null {
  const at = fields.findIndex((field, i) => i % 2 === 0 && field.toString() === name);
  return at < 0 ? null : (fields[at + 1] as Text);
}
