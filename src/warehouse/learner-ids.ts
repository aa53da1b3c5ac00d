/** Event ids of learners' answers, as Redis has to know them to forget them. */
import type { ClickHouseClient } from '@clickhouse/client';
import { learnerName, learnerNameSql } from '../contracts/learner-name.js';
import type { CorrectedRows, LearnersId, TakenId } from '../services/correction-ports.js';
import { selectRows } from './client.js';
import type { Table } from './table.js';

/** @param where condition over the table, for rows of these learners alone; each may be given once */
export async function eventIdsOf(
  client: ClickHouseClient,
  { name: table }: Table,
  where: string,
  rows: readonly CorrectedRows[],
  signal?: AbortSignal,
): Promise<LearnersId[]> {
  const found = await selectRows<TakenId & { name: string }>(
    client,
    `SELECT ${learnerNameSql} AS name, event_id AS eventId,
  toUInt32(intDiv(toUnixTimestamp64Milli(received_at), 1000)) AS second
FROM ${table} WHERE ${where}`,
    signal,
  );
  const learners = new Map(rows.map((one) => [learnerName(one.tenant, one.userId), one]));
  return found.map(({ name, ...id }) => ({ ...(learners.get(name) as CorrectedRows), ...id }));
}
