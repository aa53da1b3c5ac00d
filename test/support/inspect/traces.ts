/** Finds a text in Redis and in ClickHouse. */
import type { ClickHouseClient } from '@clickhouse/client';
import { Cluster, type Redis } from 'ioredis';
import type { RedisClient } from '../../../src/store/redis/connection/client.js';
import { selectRows } from '../../../src/warehouse/clickhouse/client.js';
import { readValues } from './redis-values.js';

/** Redis keys with the text in their name or content. */
export async function keysThatSay(client: RedisClient, text: string): Promise<string[]> {
  const nodes: Redis[] = client instanceof Cluster ? client.nodes('master') : [client];
  const found: string[] = [];
  for (const node of nodes) {
    for await (const keys of node.scanStream({ count: 500 })) {
      for (const key of keys as string[])
        if ([key, ...(await readValues(node, key)).values].join(' ').includes(text)) found.push(key);
    }
  }
  return found;
}

/** Number of rows with the text per ClickHouse table; tables without such rows are omitted. */
export async function tablesThatSay(
  client: ClickHouseClient,
  text: string,
): Promise<Readonly<Record<string, number>>> {
  const tables = await selectRows<{ name: string }>(
    client,
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree' ORDER BY name",
  );
  const found: Record<string, number> = {};
  for (const { name } of tables) {
    const [row] = await selectRows<{ n: number }>(
      client,
      `SELECT toUInt32(count()) AS n FROM ${name} WHERE position(toString(tuple(*)), {text:String}) > 0`,
      { params: { text } },
    );
    if (row !== undefined && row.n > 0) found[name] = row.n;
  }
  return found;
}
