import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { selectRows } from './client.js';

const unknownDatabase = '81';

/**
 * What a new deployment has none of, the likeliest first: attempts, what is left of dropped ones, and what people set
 * before the first answer. Not keys and the deployment's own facts: every start makes them, also of one that was
 * started only once.
 */
const tables = ['attempts', 'learner_snapshots', 'goal_changes', 'skill_changes'];

/** Whether ClickHouse holds anything that was in Redis and cannot be made again. @throws where it cannot tell */
export async function holdsState(client: ClickHouseClient): Promise<boolean> {
  const present = await tablesThere(client);
  for (const table of tables) if (present.has(table) && (await hasRows(client, table))) return true;
  return false;
}

/** Asked for first: reading from one that is not there is an error, whose stack costs more than the question. */
async function tablesThere(client: ClickHouseClient): Promise<ReadonlySet<string>> {
  const query =
    'SELECT name FROM system.tables WHERE database = currentDatabase() AND name IN {tables:Array(String)}';
  try {
    return new Set(
      (await selectRows<{ name: string }>(client, query, undefined, { tables })).map(({ name }) => name),
    );
  } catch (error) {
    if (error instanceof ClickHouseError && error.code === unknownDatabase) return new Set();
    throw error;
  }
}

const hasRows = async (client: ClickHouseClient, table: string): Promise<boolean> =>
  (await selectRows(client, `SELECT 1 FROM ${table} LIMIT 1`)).length > 0;
