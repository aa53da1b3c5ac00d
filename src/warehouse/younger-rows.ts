import type { ClickHouseClient } from '@clickhouse/client';
import { selectRows } from './client.js';

/** A start waits for it. */
const timeoutMs = 5000;

/**
 * How many stored answers are younger than the last row that the outbox of their partition was given: a Redis that is
 * older than ClickHouse does not know of them.
 */
export async function countYounger(
  client: ClickHouseClient,
  lastIds: ReadonlyMap<number, readonly [ms: number, seq: number]>,
): Promise<number> {
  if (lastIds.size === 0) return 0;
  const younger = [...lastIds].map(
    ([partition, [ms, seq]]) => `(partition_id = ${partition} AND (outbox_ms, outbox_seq) > (${ms}, ${seq}))`,
  );
  const oldest = Math.min(...[...lastIds.values()].map(([ms]) => ms));
  // The index on outbox_ms leaves out nearly all of the table.
  const query = `SELECT toUInt32(count()) AS n FROM attempts WHERE outbox_ms >= ${oldest} AND (${younger.join(' OR ')})`;
  const [row] = await selectRows<{ n: number }>(client, query, AbortSignal.timeout(timeoutMs));
  return row?.n ?? 0;
}
