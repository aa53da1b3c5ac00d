/** Streams of Redis and what stands beside them, whatever they hold. */
import { isCluster, type RedisClient, resultsOf, whileRedisServes } from './client.js';

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
export type TextEntry = [id: string, fields: string[]];

/**
 * The entries of a stream, oldest first, a page at a time.
 *
 * @param size of a page: 500 entries of a row each are a fraction of a millisecond of Redis, which answers learners meanwhile
 * @param to id of the last entry
 * @throws ApiError UNAVAILABLE
 */
export async function* streamPages(
  redis: RedisClient,
  key: string,
  size = 500,
  to = '+',
): AsyncGenerator<TextEntry[]> {
  for (let from = '-'; ; ) {
    const page = await whileRedisServes(redis.xrange(key, from, to, 'COUNT', size));
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
