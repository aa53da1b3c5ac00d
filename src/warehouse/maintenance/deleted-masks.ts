/** Deleted rows are masked until their part is merged, which may be never: this takes them off the disk. */
import type { ClickHouseClient } from '@clickhouse/client';
import { selectRows } from '../clickhouse/client.js';
import type { Cluster } from '../clickhouse/cluster.js';

/**
 * Begins to rewrite the parts that have masked rows. On a cluster none are masked (cluster.ts).
 * @returns the tables
 */
export async function applyDeletedMasks(
  client: ClickHouseClient,
  cluster: Cluster = null,
): Promise<string[]> {
  if (cluster !== null) return [];
  const masked = await selectRows<{ name: string }>(
    client,
    `SELECT DISTINCT table AS name FROM system.parts
WHERE database = currentDatabase() AND active AND has_lightweight_delete ORDER BY name`,
  );
  for (const { name } of masked)
    await client.command({
      query: `ALTER TABLE ${name} APPLY DELETED MASK`,
      clickhouse_settings: { mutations_sync: '0' },
    });
  return masked.map(({ name }) => name);
}
