/** What is asked of many keys, on a single node or a Cluster. */
import type { Redis } from 'ioredis';
import { byPartition } from '../../lists.js';
import { isCluster, type RedisClient, whileRedisServes } from './client.js';

/** One call for everything on a single node; on a Cluster a script may touch one slot, so one per partition. */
export async function perCall<Item extends { readonly partition: number }, Result>(
  client: RedisClient,
  items: readonly Item[],
  call: (group: readonly Item[]) => Promise<Result[]>,
): Promise<Result[]> {
  if (!isCluster(client)) return call(items);
  const results = new Map<Item, Result>();
  const callGroup = async (group: readonly Item[]): Promise<void> => {
    const replies = await call(group);
    replies.forEach((reply, i) => {
      results.set(group[i] as Item, reply);
    });
  };
  await Promise.all([...byPartition(items).values()].map(callGroup));
  return items.map((item) => results.get(item) as Result);
}

const pageKeys = 1000;

/** Pages of keys with the node that has them. A key may come twice, in two pages. */
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
