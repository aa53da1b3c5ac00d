/** Some learners by name, for comparing them. */
import type { ClickHouseClient } from '@clickhouse/client';
import { rowColumns } from '../../contracts/attempt-row.js';
import { learnerName, learnerNameSql } from '../../contracts/learner-name.js';
import type { FoundLearners, LearnerPlace } from '../../services/rebuild/ports.js';
import { selectRows } from '../clickhouse/client.js';
import { learnerSnapshots } from '../schema/archive.js';
import { baselineHolds, learnerBaselines } from '../schema/learner-baselines.js';

/** The tenants are named apart, so that the index finds the places. */
const isWanted = `tenant IN {tenants:Array(String)} AND user_id IN {users:Array(String)}
  AND has({names:Array(String)}, ${learnerNameSql})`;

const parametersOf = (learners: readonly LearnerPlace[]) => ({
  tenants: [...new Set(learners.map(({ tenant }) => tenant))],
  users: [...new Set(learners.map(({ userId }) => userId))],
  names: learners.map(nameOf),
});

const nameOf = ({ tenant, userId }: LearnerPlace): string => learnerName(tenant, userId);

export async function readLearners(
  client: ClickHouseClient,
  learners: readonly LearnerPlace[],
): Promise<FoundLearners> {
  const read = async (selected: string, condition = isWanted): Promise<string[]> => {
    const result = await client.query({
      query: `SELECT ${selected} WHERE ${condition}`,
      format: 'TabSeparated',
      query_params: parametersOf(learners),
      clickhouse_settings: { date_time_output_format: 'unix_timestamp', wait_end_of_query: 1 },
    });
    return (await result.text()).split('\n').slice(0, -1);
  };
  return {
    rows: await read(`${rowColumns.join(', ')} FROM attempts`),
    snapshots: await read(`tenant, user_id, state FROM ${learnerSnapshots.name} FINAL`),
    baselines: await read(
      `tenant, user_id, baseline_total FROM ${learnerBaselines.name}`,
      `${baselineHolds} AND ${isWanted}`,
    ),
  };
}

/** Those without a row and without a snapshot. */
export async function unknownLearners(
  client: ClickHouseClient,
  learners: readonly LearnerPlace[],
): Promise<LearnerPlace[]> {
  if (learners.length === 0) return [];
  const found = await selectRows<{ name: string }>(
    client,
    `SELECT DISTINCT ${learnerNameSql} AS name FROM attempts WHERE ${isWanted}
     UNION DISTINCT SELECT ${learnerNameSql} AS name FROM learner_snapshots WHERE ${isWanted}`,
    undefined,
    parametersOf(learners),
  );
  const known = new Set(found.map(({ name }) => name));
  return learners.filter((learner) => !known.has(nameOf(learner)));
}
