import type { ClickHouseClient } from '@clickhouse/client';
import type { ListedErasure } from '../../contracts/responses/erasures.js';
import { createReadDeadline, selectRows } from '../clickhouse/client.js';
import type { TenantRead } from '../reads/tenant-read.js';
import { erasures } from '../schema/deployment-tables.js';
import type { ErasureReceipt } from './correction-warehouse.js';

/** Null: the erasure is unknown or not done. */
export async function findReceipt(
  client: ClickHouseClient,
  tenant: string,
  id: string,
): Promise<ErasureReceipt | null> {
  const query = `SELECT receipt FROM ${erasures.name} WHERE tenant = {tenant:String} AND erasure_id = {id:String} LIMIT 1`;
  const options = { params: { tenant, id }, signal: createReadDeadline() };
  const [found] = await selectRows<{ receipt: string }>(client, query, options);
  return found === undefined ? null : JSON.parse(found.receipt);
}

/** Newest first. @param after `requested_at` (RFC 3339), a space and `erasure_id` of the last one */
export function listReceipts(read: TenantRead, tenant: string, after: string | null, atMost: number) {
  const [requestedAt = '', id = ''] = after?.split(' ') ?? [];
  const at = after === null ? Number.MAX_SAFE_INTEGER : Date.parse(requestedAt);
  return read<ListedErasure>(receiptsQuery, tenant, { at, id, atMost });
}

const receiptsQuery = `SELECT erasure_id, 'done' AS status, requested_at, max(e.done_at) AS done_at
FROM ${erasures.name} AS e
WHERE tenant = {tenant:String} AND (toUnixTimestamp64Milli(requested_at), erasure_id) < ({at:Int64}, {id:String})
GROUP BY erasure_id, requested_at ORDER BY requested_at DESC, erasure_id DESC LIMIT {atMost:UInt32}`;
