import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { selectRows } from './client.js';

/** UNKNOWN_TABLE and UNKNOWN_DATABASE: nothing was ever stored. */
const nothingThere = new Set(['60', '81']);

/**
 * What a new deployment has none of, the likeliest first: attempts, what is left of dropped ones, and what people set
 * before the first answer. Not keys and the deployment's own facts: every start makes them, also of one that was
 * started only once.
 */
const tables = ['attempts', 'learner_snapshots', 'goal_changes', 'skill_changes'];

/** Whether ClickHouse holds anything that was in Redis and cannot be made again. @throws where it cannot tell */
export async function holdsState(client: ClickHouseClient): Promise<boolean> {
  for (const table of tables) if (await hasRows(client, table)) return true;
  return false;
}

async function hasRows(client: ClickHouseClient, table: string): Promise<boolean> {
  try {
    return (await selectRows(client, `SELECT 1 FROM ${table} LIMIT 1`)).length > 0;
  } catch (error) {
    if (error instanceof ClickHouseError && nothingThere.has(error.code)) return false;
    throw error;
  }
}
