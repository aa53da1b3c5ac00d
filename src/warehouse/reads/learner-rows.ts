import { buffer } from 'node:stream/consumers';
import type { ClickHouseClient } from '@clickhouse/client';
import { attemptColumns } from '../../contracts/answers/attempt-row.js';
import { type LearnerId, learnerName, learnerNameSql } from '../../contracts/learners/learner-name.js';
import type { LearnerRows } from '../../contracts/rebuild/rebuild-tasks.js';
import { distinct } from '../../lists.js';
import { selectRows } from '../clickhouse/client.js';
import { learnerSnapshots } from '../schema/attempt-tables.js';

/** About 10 MB. */
const pageRows = 30_000;

/** Repeats the first key column, for the index. */
export const afterLearnerCondition = `(tenant >= {tenant:String}
  AND (tenant > {tenant:String} OR user_id > {userId:String}))`;

const untilLearnerCondition = `(tenant <= {untilTenant:String}
  AND (tenant < {untilTenant:String} OR user_id <= {untilUser:String}))`;

/** Repeats tenants and users, for the index. */
export const namedLearnersCondition = `tenant IN {tenants:Array(String)} AND user_id IN {users:Array(String)}
  AND has({names:Array(String)}, ${learnerNameSql})`;
export const buildNameParams = (learners: readonly LearnerId[]) => ({
  tenants: distinct(learners.map(({ tenant }) => tenant)),
  users: distinct(learners.map(({ userId }) => userId)),
  names: learners.map(({ tenant, userId }) => learnerName(tenant, userId)),
});

const snapshotColumns = ['tenant', 'user_id', 'learner_seq'];
const snapshotExpressions = attemptColumns.map((name) =>
  snapshotColumns.includes(name) ? name : `${name === 'further_skills' ? '[]' : 'NULL'} AS ${name}`,
);

const learnerOrder = 'ORDER BY tenant, user_id';

/** Snapshots replace rows that retention deleted. @param attemptsCondition for `attempts` only */
export async function readLearners(
  client: ClickHouseClient,
  condition: string,
  query_params: Record<string, unknown>,
  attemptsCondition = 'true',
): Promise<LearnerRows> {
  const query = `SELECT * FROM (
  SELECT ${attemptColumns.join(', ')}, '' AS state FROM attempts WHERE ${condition} AND ${attemptsCondition} ${learnerOrder}, learner_seq
  UNION ALL
  SELECT ${snapshotExpressions.join(', ')}, state FROM ${learnerSnapshots.name} WHERE ${condition} ${learnerOrder}, learner_seq
) ${learnerOrder}, learner_seq, state FORMAT TabSeparated`;
  const { stream } = await client.exec({
    query,
    query_params,
    // An error arrives before the first row.
    clickhouse_settings: { date_time_output_format: 'unix_timestamp', wait_end_of_query: 1 },
  });
  return buffer(stream);
}

const buildPageEnd = (condition: string): string => {
  const read = (table: string): string =>
    `SELECT tenant, user_id FROM ${table} WHERE ${condition} ${learnerOrder} LIMIT ${pageRows + 1}`;
  return `SELECT toString(tenant) AS tenant, user_id AS userId
    FROM (${read('attempts')} UNION ALL ${read(learnerSnapshots.name)}) ${learnerOrder} LIMIT 1 OFFSET ${pageRows}`;
};

/**
 * Pages are ordered by tenant and user. `last` is null on the last page. @param after learner before the
 * first page
 */
export async function* readAttemptPages(
  client: ClickHouseClient,
  partitions: readonly number[],
  after: LearnerId | null,
): AsyncGenerator<{ readonly rows: LearnerRows; readonly last: LearnerId | null }> {
  const partitionCondition = 'partition_id IN {partitions:Array(UInt16)}';
  for (let [from, isLast] = [after, false]; !isLast; ) {
    const condition =
      from === null ? partitionCondition : `${partitionCondition} AND ${afterLearnerCondition}`;
    const params = { partitions, ...from };
    const [last = null] = await selectRows<LearnerId>(client, buildPageEnd(condition), { params });
    const until = last && { untilTenant: last.tenant, untilUser: last.userId };
    const pageCondition = until ? `${condition} AND ${untilLearnerCondition}` : condition;
    const rows = await readLearners(client, pageCondition, { ...params, ...until });
    if (rows.length > 0) yield { rows, last };
    [from, isLast] = [last, last === null];
  }
}
