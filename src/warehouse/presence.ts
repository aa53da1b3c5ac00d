import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { selectRows } from './client.js';

/** UNKNOWN_TABLE and UNKNOWN_DATABASE: nothing was ever stored. */
const nothingThere = new Set(['60', '81']);

/** Whether ClickHouse holds any attempt, or what is left of dropped ones. @throws where it cannot tell */
export const hasAttempts = async (client: ClickHouseClient): Promise<boolean> =>
  (await hasRows(client, 'attempts')) || (await hasRows(client, 'learner_snapshots'));

async function hasRows(client: ClickHouseClient, table: string): Promise<boolean> {
  try {
    return (await selectRows(client, `SELECT 1 FROM ${table} LIMIT 1`)).length > 0;
  } catch (error) {
    if (error instanceof ClickHouseError && nothingThere.has(error.code)) return false;
    throw error;
  }
}
