/** Months are written as 202601. services/retention/apply-retention.ts runs the steps. */
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import type { LearnerId } from '../../contracts/learners/learner-name.js';
import type { LearnerRows } from '../../contracts/rebuild/rebuild-tasks.js';
import { runStatement, selectNumber, selectRows, syncReplicas } from '../clickhouse/client.js';
import { buildDeleteFrom, buildDropPartition, type ClusterName } from '../clickhouse/ddl.js';
import { insertObjects } from '../clickhouse/insert-rows.js';
import { readLearners } from '../reads/learner-rows.js';
import { fetchArchivedMonth } from '../reads/stored-state.js';
import { learnerSnapshots, summedAnswers } from '../schema/attempt-tables.js';
import { servedForecasts } from '../schema/journal-tables.js';
import { buildRollupSelect, listRollupColumns } from '../schema/rollup.js';
import { archivedLearnerSkill, archivedMonths, archivedRollup } from '../schema/rollups.js';

/** Ids are ordered by bytes; bounds are included. */
interface LearnerPage {
  readonly tenant: string;
  readonly from: string;
  readonly to: string;
}

interface LearnerSnapshot extends LearnerId {
  readonly partition: number;
  readonly learnerSeq: number;
  readonly state: string;
}

interface StoredMonth {
  readonly month: number;
  readonly answers: number;
}

/** Limits memory and time: the embedded engine runs one write at a time. */
const pageLearners = 500;
const pageAnswers = 25_000;

const monthCondition = 'toYYYYMM(received_at) = {month:UInt32}';
const tenantCondition = 'tenant = {tenant:String}';
const pageCondition = `${tenantCondition} AND user_id BETWEEN {from:String} AND {to:String}`;
const inOrderSettings: ClickHouseSettings = { optimize_aggregation_in_order: 1 };

export type AnswerArchive = ReturnType<typeof createAnswerArchive>;

/** Every call can be repeated, also concurrently. */
export function createAnswerArchive(client: ClickHouseClient, cluster: ClusterName = null) {
  const run = async (
    query: string,
    params: object = {},
    settings: ClickHouseSettings = {},
  ): Promise<void> => {
    await runStatement(client, query, { params, settings });
  };
  return {
    listMonths: (month: number) => selectRows<StoredMonth>(client, selectMonths, { params: { month } }),
    fetchArchivedMonth: () => fetchArchivedMonth(client),
    listTenants: async (month: number): Promise<string[]> => {
      const rows = await selectRows<{ tenant: string }>(client, selectTenants, { params: { month } });
      return rows.map(({ tenant }) => tenant);
    },
    fetchNextPage: (month: number, tenant: string, after: string) =>
      readNextPage(client, { month, tenant, after }),
    /** Reads one more month: clocks differ, so an answer may be counted before one that arrived earlier. */
    fetchLearners: (month: number, page: LearnerPage): Promise<LearnerRows> =>
      readLearners(client, pageCondition, { ...page, reach: addMonth(month) }, reachCondition),
    saveSnapshots: async (month: number, snapshots: readonly LearnerSnapshot[]): Promise<void> => {
      if (snapshots.length === 0) return;
      const rows = snapshots.map(({ tenant, userId, partition, learnerSeq, state }) => ({
        ...{ tenant, user_id: userId, partition_id: partition, learner_seq: learnerSeq, month, state },
      }));
      await insertObjects(client, learnerSnapshots.name, rows);
    },
    /** Readers ignore the sums until `markArchived`. */
    saveSums: (month: number, page: LearnerPage) =>
      run(insertSums, { month, ...page }, { ...inOrderSettings, insert_deduplicate: 0 }),
    /** Erased learners have no rows in the month. @returns number of erased learners */
    removeErased: async (month: number, tenant: string): Promise<number> => {
      const params = { month, tenant };
      const erased = await selectRows<{ user: string }>(client, selectErased, { params });
      if (erased.length === 0) return 0;
      // If another process dropped the month, all learners would look erased.
      if ((await selectNumber(client, selectAnyRow, { params: { month } })) === 0) return 0;
      const users = erased.map(({ user }) => user);
      for (const name of archiveTables)
        await run(
          `${buildDeleteFrom(name, cluster)} WHERE ${archiveCondition} AND user_id IN {users:Array(String)}`,
          {
            ...params,
            users,
          },
        );
      return users.length;
    },
    findDifference: async (month: number): Promise<string | null> => {
      const params = { month };
      if ((await selectNumber(client, countDistinctSums, { params })) !== 1)
        return 'the archived sums differ from the rows';
      const missing = await selectNumber(client, countWithoutSnapshot, { params });
      return missing === 0 ? null : `${missing} learners have no snapshot`;
    },
    markArchived: ({ month, answers }: StoredMonth) => run(insertMonth, { month, answers }),
    dropMonth: async (month: number): Promise<void> => {
      await run(buildDropPartition('attempts', month, cluster));
      await syncReplicas(client, 'attempts', cluster);
    },
    /** Only months with past horizons (forecast-views.ts). */
    listScoredMonths: async (month: number): Promise<number[]> => {
      const rows = await selectRows<{ month: number }>(client, selectScoredMonths, { params: { month } });
      return rows.map((row) => row.month);
    },
    dropForecasts: (month: number) => run(buildDropPartition(servedForecasts.name, month, cluster)),
  };
}

const selectMonths = `SELECT toYYYYMM(received_at) AS month, toFloat64(count()) AS answers FROM attempts
WHERE toYYYYMM(received_at) <= {month:UInt32} GROUP BY month ORDER BY month`;

const selectTenants = `SELECT DISTINCT tenant FROM attempts WHERE ${monthCondition} ORDER BY tenant`;

const selectLearners = `SELECT user_id AS user, toUInt32(count()) AS answers FROM attempts
WHERE ${monthCondition} AND ${tenantCondition} AND user_id > {after:String}
GROUP BY user_id ORDER BY user_id LIMIT ${pageLearners}`;

async function readNextPage(
  client: ClickHouseClient,
  params: { readonly month: number; readonly tenant: string; readonly after: string },
): Promise<LearnerPage | null> {
  const learners = await selectRows<{ user: string; answers: number }>(client, selectLearners, {
    ...{ params, settings: inOrderSettings },
  });
  const from = learners[0]?.user;
  if (from === undefined) return null;
  let to = from;
  let sum = 0;
  for (const { user, answers } of learners) {
    sum += answers;
    if (sum > pageAnswers) break;
    to = user;
  }
  return { tenant: params.tenant, from, to };
}

const addMonth = (month: number): number => (month % 100 === 12 ? month + 89 : month + 1);
const reachCondition = 'toYYYYMM(received_at) <= {reach:UInt32}';

const insertSums = `INSERT INTO ${archivedLearnerSkill.name} (${listRollupColumns(archivedRollup)})
${buildRollupSelect(archivedRollup, `${monthCondition} AND ${pageCondition}`)}`;

const archiveTables = [archivedLearnerSkill, learnerSnapshots].map(({ name }) => name);
const archiveCondition = `month = {month:UInt32} AND ${tenantCondition}`;

const selectErased = `SELECT DISTINCT user_id AS user
FROM (${archiveTables.map((name) => `SELECT user_id FROM ${name} WHERE ${archiveCondition}`).join(' UNION ALL ')})
WHERE user_id NOT IN (SELECT user_id FROM attempts WHERE ${monthCondition} AND ${tenantCondition})`;

const selectAnyRow = `SELECT 1 FROM attempts WHERE ${monthCondition} LIMIT 1`;

const buildFingerprint = (answers: string, day: string): string =>
  `sum(${answers} * cityHash64(tenant, user_id, skill_id, ${day}))`;

/** 1: the sums match the rows. Counts an answer under each of its skills. */
const countDistinctSums = `SELECT toUInt32(uniqExact(answers, fingerprint)) AS n FROM (
  SELECT count() AS answers, ${buildFingerprint('1', 'local_date')} AS fingerprint
  FROM ${summedAnswers} WHERE ${monthCondition}
  UNION ALL
  SELECT sum(attempts) AS answers, ${buildFingerprint('attempts', 'day')} AS fingerprint
  FROM ${archivedLearnerSkill.name} FINAL WHERE month = {month:UInt32}
)`;

const countWithoutSnapshot = `SELECT toUInt32(count()) AS n FROM (
  SELECT tenant, user_id, max(learner_seq) AS last FROM attempts WHERE ${monthCondition} GROUP BY tenant, user_id
) AS r LEFT ANY JOIN (
  SELECT tenant, user_id, learner_seq FROM ${learnerSnapshots.name} FINAL
) AS s ON s.tenant = r.tenant AND s.user_id = r.user_id
WHERE s.learner_seq < r.last`;

const insertMonth = `INSERT INTO ${archivedMonths.name} (month, answers) VALUES ({month:UInt32}, {answers:UInt64})`;

const selectScoredMonths = `SELECT toYYYYMM(made_at) AS month FROM ${servedForecasts.name}
WHERE toYYYYMM(made_at) <= {month:UInt32} GROUP BY month
HAVING max(toDate(made_at) + forecast_days) + 1 < toDate(now('UTC')) ORDER BY month`;
