/** Archiving months of `attempts`; services/retention/retain-answers.ts says in which order, and why. */
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import type {
  AnswerArchive,
  ForecastArchive,
  LearnerPage,
  StoredMonth,
} from '../../services/retention/retention-ports.js';
import { selectRows } from '../clickhouse/client.js';
import { type Cluster, catchUp, deleteFrom, dropPartition } from '../clickhouse/cluster.js';
import { archivedLearnerSkill, archivedMonths, archivedRollup, archivedThrough } from '../schema/archive.js';
import { servedForecasts } from '../schema/journal-tables.js';
import { learnerSnapshots } from '../schema/learner-snapshots.js';
import { rollupColumns, selectRollup } from '../schema/rollups.js';

/** Bounds what is read and held at a time: the embedded engine writes for nobody else meanwhile. */
const pageLearners = 500;
const pageAnswers = 50_000;

/** Rows of a month of arrival: the condition names whole partitions. */
const ofMonth = 'toYYYYMM(received_at) = {month:UInt32}';
const ofPage = 'tenant = {tenant:String} AND user_id BETWEEN {from:String} AND {to:String}';
/** A page is read from the table's key on, and no further than it reaches. */
const inOrder: ClickHouseSettings = { optimize_aggregation_in_order: 1 };

export function createAnswerArchive(client: ClickHouseClient, cluster: Cluster = null): AnswerArchive {
  async function nextPage(month: number, tenant: string, after: string): Promise<LearnerPage | null> {
    const learners = await selectRows<{ user: string; answers: number }>(
      client,
      `SELECT user_id AS user, toUInt32(count()) AS answers FROM attempts
       WHERE ${ofMonth} AND tenant = {tenant:String} AND user_id > {after:String}
       GROUP BY user_id ORDER BY user_id LIMIT ${pageLearners}`,
      undefined,
      { month, tenant, after },
      inOrder,
    );
    const [first] = learners;
    if (first === undefined) return null;
    let last = first;
    let answers = 0;
    for (const learner of learners) {
      answers += learner.answers;
      if (answers > pageAnswers) break;
      last = learner;
    }
    return { tenant, from: first.user, to: last.user };
  }

  /** Learners that the month's archive or snapshots have and its rows have not. */
  const strangers = (month: number, tenant: string) =>
    selectRows<{ user: string }>(
      client,
      `SELECT DISTINCT user_id AS user FROM (
         SELECT user_id FROM ${archivedLearnerSkill.name} WHERE month = {month:UInt32} AND tenant = {tenant:String}
         UNION ALL
         SELECT user_id FROM ${learnerSnapshots.name} WHERE month = {month:UInt32} AND tenant = {tenant:String}
       ) WHERE user_id NOT IN (SELECT user_id FROM attempts WHERE ${ofMonth} AND tenant = {tenant:String})`,
      undefined,
      { month, tenant },
    );

  async function forgetErased(month: number, tenant: string): Promise<number> {
    const users = (await strangers(month, tenant)).map(({ user }) => user);
    // Rows that are here now were here before: it is they that were asked, and not a month that another process dropped.
    if (users.length === 0 || !(await hasRows(month))) return 0;
    for (const { name } of [archivedLearnerSkill, learnerSnapshots]) {
      await client.command({
        query: `${deleteFrom(name, cluster)} WHERE month = {month:UInt32} AND tenant = {tenant:String} AND user_id IN {users:Array(String)}`,
        query_params: { month, tenant, users },
      });
    }
    return users.length;
  }

  const hasRows = async (month: number): Promise<boolean> =>
    (await selectRows(client, `SELECT 1 FROM attempts WHERE ${ofMonth} LIMIT 1`, undefined, { month }))
      .length > 0;

  return {
    monthsUpTo: (month) =>
      selectRows<StoredMonth>(
        client,
        `SELECT toYYYYMM(received_at) AS month, toFloat64(count()) AS answers FROM attempts
         WHERE toYYYYMM(received_at) <= {month:UInt32} GROUP BY month ORDER BY month`,
        undefined,
        { month },
      ),
    archivedThrough: async () => (await scalar(client, `SELECT ${archivedThrough} AS n`, {})) ?? 0,
    tenantsOf: async (month) => {
      const query = `SELECT DISTINCT tenant FROM attempts WHERE ${ofMonth} ORDER BY tenant`;
      const rows = await selectRows<{ tenant: string }>(client, query, undefined, { month });
      return rows.map(({ tenant }) => tenant);
    },
    nextPage,
    archive: async (month, page) => {
      await client.command({
        query: `INSERT INTO ${archivedLearnerSkill.name} (${rollupColumns(archivedRollup)})
${selectRollup(archivedRollup, `${ofMonth} AND ${ofPage}`)}`,
        query_params: { month, ...page },
        clickhouse_settings: { ...inOrder, insert_deduplicate: 0 },
      });
    },
    forgetErased,
    differs: (month) => differs(client, month),
    markArchived: async ({ month, answers }) => {
      await client.command({
        query: `INSERT INTO ${archivedMonths.name} (month, answers) VALUES ({month:UInt32}, {answers:UInt64})`,
        query_params: { month, answers },
      });
    },
    drop: async (month) => {
      await client.command({ query: dropPartition('attempts', month, cluster) });
      const query = catchUp('attempts', cluster);
      if (query !== null) await client.command({ query });
    },
  };
}

/** A number for a set of answers, the same only for the same counts of learners, skills and days. */
const fingerprint = (answers: string, day: string): string =>
  `sum(${answers} * cityHash64(tenant, user_id, skill_id, ${day}))`;

async function differs(client: ClickHouseClient, month: number): Promise<string | null> {
  const unlike = await scalar(
    client,
    `SELECT toUInt32(uniqExact(answers, fingerprint)) AS n FROM (
       SELECT count() AS answers, ${fingerprint('1', 'toDate(occurred_at)')} AS fingerprint
       FROM attempts WHERE ${ofMonth}
       UNION ALL
       SELECT sum(attempts) AS answers, ${fingerprint('attempts', 'day')} AS fingerprint
       FROM ${archivedLearnerSkill.name} FINAL WHERE month = {month:UInt32}
     )`,
    { month },
  );
  if (unlike !== 1) return 'the archived sums are not those of the rows';
  const without = await scalar(
    client,
    `SELECT toUInt32(count()) AS n FROM (
       SELECT tenant, user_id, max(learner_seq) AS last FROM attempts WHERE ${ofMonth} GROUP BY tenant, user_id
     ) AS r LEFT ANY JOIN (
       SELECT tenant, user_id, learner_seq FROM ${learnerSnapshots.name} FINAL
     ) AS s ON s.tenant = r.tenant AND s.user_id = r.user_id
     WHERE s.learner_seq < r.last`,
    { month },
  );
  return without === 0 ? null : `${without} learners have no snapshot`;
}

/** Forecasts are scored when their last day is over: forecast-views.ts. */
export const createForecastArchive = (
  client: ClickHouseClient,
  cluster: Cluster = null,
): ForecastArchive => ({
  scoredMonthsUpTo: async (month) => {
    const query = `SELECT toYYYYMM(made_at) AS month FROM ${servedForecasts.name}
      WHERE toYYYYMM(made_at) <= {month:UInt32} GROUP BY month
      HAVING max(toDate(made_at) + forecast_days) < toDate(now('UTC')) ORDER BY month`;
    const rows = await selectRows<{ month: number }>(client, query, undefined, { month });
    return rows.map(({ month: made }) => made);
  },
  drop: async (month) => {
    await client.command({ query: dropPartition(servedForecasts.name, month, cluster) });
  },
});

async function scalar(client: ClickHouseClient, query: string, params: object): Promise<number | undefined> {
  const [row] = await selectRows<{ n: number }>(client, query, undefined, { ...params });
  return row?.n;
}
