import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { selectRows } from './client.js';

/** UNKNOWN_TABLE and UNKNOWN_DATABASE: nothing was ever stored. */
const nothingThere = new Set(['60', '81']);

/** Whether ClickHouse holds any attempt. @throws where it cannot tell */
export async function hasAttempts(client: ClickHouseClient): Promise<boolean> {
  try {
    return (await selectRows(client, 'SELECT 1 FROM attempts LIMIT 1')).length > 0;
  } catch (error) {
    if (error instanceof ClickHouseError && nothingThere.has(error.code)) return false;
    throw error;
  }
}
