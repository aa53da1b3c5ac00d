import type { ClickHouseClient } from '@clickhouse/client';
import type { LastRow } from '../../contracts/outbox-ids.js';
import { selectRows } from '../clickhouse/client.js';

const timeoutMs = 5000;

/**
 * How many stored answers are younger than the last row that the outbox of their partition was given, and older than
 * the moment when that was asked: a Redis that is older than ClickHouse does not know of them.
 */
export async function countYounger(client: ClickHouseClient, last: readonly LastRow[]): Promise<number> {
  if (last.length === 0) return 0;
  const younger = last.map(
    ({ partition, ms, seq, askedAt }) =>
      `(partition_id = ${partition} AND (outbox_ms, outbox_seq) > (${ms}, ${seq}) AND outbox_ms < ${askedAt})`,
  );
  const oldest = Math.min(...last.map(({ ms }) => ms));
  // The index on outbox_ms leaves out nearly all of the table.
  const query = `SELECT toUInt32(count()) AS n FROM attempts WHERE outbox_ms >= ${oldest} AND (${younger.join(' OR ')})`;
  const [row] = await selectRows<{ n: number }>(client, query, AbortSignal.timeout(timeoutMs));
  return row?.n ?? 0;
}
