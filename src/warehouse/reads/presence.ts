/** What ClickHouse has, so that a Redis is known that came back empty or older. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { LastRow } from '../../contracts/outbox-ids.js';
import { isUnknownDatabase, selectNumber, selectRows } from '../clickhouse/client.js';
import { archivedThrough } from '../schema/rollups.js';

/**
 * What a new deployment has no rows of, the likeliest first: attempts, what is left of dropped ones, what people set before
 * the first answer, and the end of a key. Not keys and the deployment's own facts, which every start makes.
 */
const places = [
  ...['attempts', 'learner_snapshots', 'goal_changes', 'skill_changes', 'webhooks', 'xapi_mappings'].map(
    (table) => [table, table] as const,
  ),
  ['api_keys', 'api_keys WHERE revoked_at IS NOT NULL'] as const,
];

/** Whether ClickHouse holds anything that was in Redis and cannot be made again. @throws where that is not known */
export async function holdsState(client: ClickHouseClient): Promise<boolean> {
  for (const [table, rows] of places)
    if (await exists(client, table)) {
      const found = await selectRows(client, `SELECT 1 FROM ${rows} LIMIT 1`);
      if (found.length > 0) return true;
    }
  return false;
}

/**
 * Asked before: to read from a table that is not there is an error, whose stack costs more than the question. Not of
 * system.tables, which hides what the account may not see: an emptied Redis would be taken for new.
 */
async function exists(client: ClickHouseClient, table: string): Promise<boolean> {
  try {
    return (await selectNumber(client, `EXISTS TABLE ${table}`)) === 1;
  } catch (error) {
    if (isUnknownDatabase(error)) return false;
    throw error;
  }
}

const youngerTimeoutMs = 5000;

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
  return selectNumber(client, query, { signal: AbortSignal.timeout(youngerTimeoutMs) });
}

/** The last month of arrival, as 202601, that is archived and whose answers count by their sums alone; 0: none. */
export const archivedMonth = (client: ClickHouseClient, signal?: AbortSignal): Promise<number> =>
  selectNumber(client, `SELECT ${archivedThrough} AS month`, { signal });
