import type { ClickHouseClient } from '@clickhouse/client';
import { isUnknownDatabase, selectRows } from '../clickhouse/client.js';

/**
 * What a new deployment has none of, the likeliest first: attempts, what is left of dropped ones, and what people set
 * before the first answer. Not keys and the deployment's own facts: every start makes them, also of one that was
 * started only once.
 */
const tables = ['attempts', 'learner_snapshots', 'goal_changes', 'skill_changes'];

/** But the end of a key: a start would take it for new. */
const revokedKeys = 'api_keys WHERE revoked_at IS NOT NULL';

/** Whether ClickHouse holds anything that was in Redis and cannot be made again. @throws where that is not known */
export async function holdsState(client: ClickHouseClient): Promise<boolean> {
  for (const table of tables)
    if ((await exists(client, table)) && (await hasRows(client, table))) return true;
  return (await exists(client, 'api_keys')) && (await hasRows(client, revokedKeys));
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

const hasRows = async (client: ClickHouseClient, rows: string): Promise<boolean> =>
  (await selectRows(client, `SELECT 1 FROM ${rows} LIMIT 1`)).length > 0;
