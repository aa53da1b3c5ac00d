/** Detects a Redis that is empty or older than ClickHouse. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { LastRow } from '../../contracts/outbox/outbox-ids.js';
import { isUnknownDatabase, selectNumber, selectRows } from '../clickhouse/client.js';
import { lastArchivedMonth } from '../schema/rollups.js';

/** Empty in a new deployment. Every start writes active keys and deployment facts, so they do not count. */
const stateTables = [
  ...[
    'attempts',
    'learner_snapshots',
    'goal_changes',
    'skill_changes',
    'webhooks',
    'xapi_mappings',
    'tenant_settings',
  ].map((table) => [table, table] as const),
  ['api_keys', 'api_keys WHERE revoked_at IS NOT NULL'] as const,
];

export async function hasStoredState(client: ClickHouseClient): Promise<boolean> {
  for (const [table, rows] of stateTables)
    if (await tableExists(client, table)) {
      const found = await selectRows(client, `SELECT 1 FROM ${rows} LIMIT 1`);
      if (found.length > 0) return true;
    }
  return false;
}

/**
 * Reading a missing table causes an error. system.tables hides tables from some accounts: an emptied Redis
 * would look new.
 */
async function tableExists(client: ClickHouseClient, table: string): Promise<boolean> {
  try {
    return (await selectNumber(client, `EXISTS TABLE ${table}`)) === 1;
  } catch (error) {
    if (isUnknownDatabase(error)) return false;
    throw error;
  }
}

const newerTimeoutMs = 5000;

/** Stored answers that an older Redis does not know. */
export async function countNewerRows(client: ClickHouseClient, last: readonly LastRow[]): Promise<number> {
  if (last.length === 0) return 0;
  const newerConditions = last.map(
    ({ partition, ms, seq, readAt }) =>
      `(partition_id = ${partition} AND (outbox_ms, outbox_seq) > (${ms}, ${seq}) AND outbox_ms < ${readAt})`,
  );
  const oldest = Math.min(...last.map(({ ms }) => ms));
  const query = `SELECT toUInt32(count()) AS n FROM attempts WHERE outbox_ms >= ${oldest} AND (${newerConditions.join(' OR ')})`;
  return selectNumber(client, query, { signal: AbortSignal.timeout(newerTimeoutMs) });
}

/** As 202601; 0: none. */
export const fetchArchivedMonth = (client: ClickHouseClient, signal?: AbortSignal): Promise<number> =>
  selectNumber(client, `SELECT ${lastArchivedMonth} AS month`, { signal });
