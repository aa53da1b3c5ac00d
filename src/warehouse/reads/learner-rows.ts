/** A learner's rows in every table, told as they are. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { Limiter } from '../../concurrency.js';
import type { ExportRecord } from '../../contracts/export-record.js';
import { selectRows } from '../clickhouse/client.js';
import { attempts } from '../schema/attempts.js';
import { finalOf, type LearnerTable, learnerTables } from '../schema/learner-tables.js';

const pageRows = 500;
/** Of one page. */
const timeoutMs = 10_000;
const rfc3339 = { date_time_output_format: 'iso' } as const;

const query = ({ table }: LearnerTable): string => `SELECT ${table.columns.map(({ name }) => name).join(', ')}
FROM ${table.name} ${finalOf(table)} WHERE tenant = {tenant:String} AND user_id = {userId:String}
ORDER BY ${table.orderBy.replace(/[()]/g, '')} LIMIT {atMost:UInt32} OFFSET {skip:UInt32}`;

/** Answers are read otherwise, for Redis has to be asked too. */
const others = learnerTables.filter(({ table }) => table !== attempts);

export type LearnerTables = ReturnType<typeof createLearnerTables>;

/** The learner's rows beside answers. @param limit of each page */
export const createLearnerTables = (client: ClickHouseClient, limit: Limiter) => ({
  rows: async function* (tenant: string, userId: string) {
    for (const one of others) yield* pages(client, limit, one, { tenant, userId });
  },
});

async function* pages(
  client: ClickHouseClient,
  limit: Limiter,
  one: LearnerTable,
  learner: { readonly tenant: string; readonly userId: string },
): AsyncGenerator<readonly ExportRecord[]> {
  for (let skip = 0; ; skip += pageRows) {
    const params = { ...learner, atMost: pageRows, skip };
    const rows = await limit(learner.tenant, () =>
      selectRows<object>(client, query(one), AbortSignal.timeout(timeoutMs), params, rfc3339),
    );
    yield rows.map((row) => ({ type: one.rowType, place: 'clickhouse', ...row }));
    if (rows.length < pageRows) return;
  }
}
