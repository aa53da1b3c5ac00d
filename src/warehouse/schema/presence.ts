import type { ClickHouseClient } from '@clickhouse/client';
import { isUnknownDatabase, selectRows } from '../clickhouse/client.js';

/**
 * What a new deployment has no rows of, the likeliest first: attempts, what is left of dropped ones, what people set before
 * the first answer, and the end of a key. Not keys and the deployment's own facts, which every start makes.
 */
const places = ['attempts', 'learner_snapshots', 'goal_changes', 'skill_changes'].map((table) => ({
  table,
  rows: table,
}));
const revokedKeys = { table: 'api_keys', rows: 'api_keys WHERE revoked_at IS NOT NULL' };

/** Whether ClickHouse holds anything that was in Redis and cannot be made again. @throws where that is not known */
export async function holdsState(client: ClickHouseClient): Promise<boolean> {
  for (const { table, rows } of [...places, revokedKeys])
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
    const [row] = await selectRows<{ result: number }>(client, `EXISTS TABLE ${table}`);
    return row?.result === 1;
  } catch (error) {
    if (isUnknownDatabase(error)) return false;
    throw error;
  }
}
