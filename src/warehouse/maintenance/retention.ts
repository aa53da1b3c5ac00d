/** Archiving months of arrival; services/retention/retain-answers.ts says in which order, and why. Months are as 202601. */
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import type { LearnerRows } from '../../contracts/rebuild-tasks.js';
import { selectRows } from '../clickhouse/client.js';
import { type Cluster, deleteFrom, dropPartition } from '../clickhouse/cluster.js';
import { complete } from '../ingest/repair.js';
import { readLearners } from '../reads/attempt-pages.js';
import {
  archivedLearnerSkill,
  archivedMonths,
  archivedRollup,
  archivedThrough,
  learnerSnapshots,
} from '../schema/archive.js';
import { servedForecasts } from '../schema/journal-tables.js';
import { rollupColumns, selectRollup } from '../schema/rollups.js';

/** Learners of one tenant from the first to the last id, both included, in the order of their bytes. */
interface LearnerPage {
  readonly tenant: string;
  readonly from: string;
  readonly to: string;
}

interface LearnerSnapshot {
  readonly tenant: string;
  readonly userId: string;
  readonly partition: number;
  /** Number of the last answer that the state has. */
  readonly learnerSeq: number;
  readonly state: string;
}

export interface StoredMonth {
  readonly month: number;
  readonly answers: number;
}

/** Bounds what is read and held at a time: the embedded engine writes for nobody else meanwhile. */
const pageLearners = 500;
const pageAnswers = 25_000;

/** Rows of a month of arrival: the condition names whole partitions. */
const ofMonth = 'toYYYYMM(received_at) = {month:UInt32}';
const ofTenant = 'tenant = {tenant:String}';
const ofPage = `${ofTenant} AND user_id BETWEEN {from:String} AND {to:String}`;
/** A page is read from the table's key on, and no further than it reaches. */
const inOrder: ClickHouseSettings = { optimize_aggregation_in_order: 1 };

/** What is archived of learners of a month and a tenant. */
const archives = [archivedLearnerSkill, learnerSnapshots].map(({ name }) => name);
const inArchive = `month = {month:UInt32} AND ${ofTenant}`;

export type AnswerArchive = ReturnType<typeof createAnswerArchive>;

/** The answers in ClickHouse by month of arrival. Every call may be repeated, also by several processes at once. */
export function createAnswerArchive(client: ClickHouseClient, cluster: Cluster = null) {
  const select = <Row>(query: string, params: object = {}, settings: ClickHouseSettings = {}) =>
    selectRows<Row>(client, query, undefined, { ...params }, settings);
  const first = async <Row>(query: string, params: object = {}) => (await select<Row>(query, params))[0];

  return {
    /** The months up to the given one that have rows, oldest first. */
    monthsUpTo: (month: number): Promise<StoredMonth[]> =>
      select(
        `SELECT toYYYYMM(received_at) AS month, toFloat64(count()) AS answers FROM attempts
         WHERE toYYYYMM(received_at) <= {month:UInt32} GROUP BY month ORDER BY month`,
        { month },
      ),

    /** The last month that is archived; 0: none. Its answers count by their sums alone. */
    archivedThrough: async (): Promise<number> =>
      (await first<{ month: number }>(`SELECT ${archivedThrough} AS month`))?.month ?? 0,

    tenantsOf: async (month: number): Promise<string[]> => {
      const query = `SELECT DISTINCT tenant FROM attempts WHERE ${ofMonth} ORDER BY tenant`;
      return (await select<{ tenant: string }>(query, { month })).map(({ tenant }) => tenant);
    },

    /** The next learners with rows of the month behind the given id; null: none. */
    nextPage: async (month: number, tenant: string, after: string): Promise<LearnerPage | null> => {
      const learners = await select<{ user: string; answers: number }>(
        `SELECT user_id AS user, toUInt32(count()) AS answers FROM attempts
         WHERE ${ofMonth} AND ${ofTenant} AND user_id > {after:String}
         GROUP BY user_id ORDER BY user_id LIMIT ${pageLearners}`,
        { month, tenant, after },
        inOrder,
      );
      const from = learners[0]?.user;
      if (from === undefined) return null;
      let to = from;
      let sum = 0;
      for (const { user, answers } of learners) {
        sum += answers;
        if (sum > pageAnswers) break;
        to = user;
      }
      return { tenant, from, to };
    },

    /**
     * All rows of the page's learners that arrived up to the month after, with their snapshots: answers counted before the
     * month's last one arrived at most a clock's error later.
     */
    learners: (month: number, page: LearnerPage): Promise<LearnerRows> =>
      readLearners(client, ofPage, { ...page, reach: monthAfter(month) }, arrivedInReach),

    /** A learner's later snapshot replaces the earlier one. */
    saveSnapshots: async (month: number, snapshots: readonly LearnerSnapshot[]): Promise<void> => {
      if (snapshots.length === 0) return;
      await client.insert({
        table: learnerSnapshots.name,
        columns: ['tenant', 'user_id', 'partition_id', 'learner_seq', 'month', 'state'],
        format: 'JSONCompactEachRow',
        values: snapshots.map((one) => [
          ...[one.tenant, one.userId, one.partition],
          ...[one.learnerSeq, month, one.state],
        ]),
      });
    },

    /** Writes the sums that the learners' answers of the month make; they count when the month is archived. */
    archive: async (month: number, page: LearnerPage): Promise<void> => {
      await client.command({
        query: `INSERT INTO ${archivedLearnerSkill.name} (${rollupColumns(archivedRollup)})
${selectRollup(archivedRollup, `${ofMonth} AND ${ofPage}`)}`,
        query_params: { month, ...page },
        clickhouse_settings: { ...inOrder, insert_deduplicate: 0 },
      });
    },

    /**
     * Deletes sums and snapshots of the month whose learners have no rows in it: they were erased after these were read.
     * @returns how many learners
     */
    forgetErased: async (month: number, tenant: string): Promise<number> => {
      const archived = archives.map((name) => `SELECT user_id FROM ${name} WHERE ${inArchive}`);
      const strangers = await select<{ user: string }>(
        `SELECT DISTINCT user_id AS user FROM (${archived.join(' UNION ALL ')})
         WHERE user_id NOT IN (SELECT user_id FROM attempts WHERE ${ofMonth} AND ${ofTenant})`,
        { month, tenant },
      );
      if (strangers.length === 0) return 0;
      // Rows that are here now were here before: it is they that were asked, and not a month that another process dropped.
      if (!(await first(`SELECT 1 FROM attempts WHERE ${ofMonth} LIMIT 1`, { month }))) return 0;
      const users = strangers.map(({ user }) => user);
      for (const name of archives) {
        await client.command({
          query: `${deleteFrom(name, cluster)} WHERE ${inArchive} AND user_id IN {users:Array(String)}`,
          query_params: { month, tenant, users },
        });
      }
      return users.length;
    },

    /** What is wrong with the archive of the month, compared with its rows, or null. */
    differs: async (month: number): Promise<string | null> => {
      const sums = await first<{ n: number }>(countUnlikeSums, { month });
      if (sums?.n !== 1) return 'the archived sums are not those of the rows';
      const without = (await first<{ n: number }>(countWithoutSnapshot, { month }))?.n;
      return without === 0 ? null : `${without} learners have no snapshot`;
    },

    /** From here on the month counts by its sums. */
    markArchived: async ({ month, answers }: StoredMonth): Promise<void> => {
      await client.command({
        query: `INSERT INTO ${archivedMonths.name} (month, answers) VALUES ({month:UInt32}, {answers:UInt64})`,
        query_params: { month, answers },
      });
    },

    /** Drops the rows of the month. */
    drop: async (month: number): Promise<void> => {
      await client.command({ query: dropPartition('attempts', month, cluster) });
      await complete(client, 'attempts', cluster);
    },

    /** The months of served forecasts up to the given one that are all scored: their last days are over (forecast-views.ts). */
    scoredMonthsUpTo: async (month: number): Promise<number[]> => {
      const query = `SELECT toYYYYMM(made_at) AS month FROM ${servedForecasts.name}
        WHERE toYYYYMM(made_at) <= {month:UInt32} GROUP BY month
        HAVING max(toDate(made_at) + forecast_days) < toDate(now('UTC')) ORDER BY month`;
      return (await select<{ month: number }>(query, { month })).map((row) => row.month);
    },

    dropForecasts: async (month: number): Promise<void> => {
      await client.command({ query: dropPartition(servedForecasts.name, month, cluster) });
    },
  };
}

const monthAfter = (month: number): number => (month % 100 === 12 ? month + 89 : month + 1);
const arrivedInReach = 'toYYYYMM(received_at) <= {reach:UInt32}';

/** A number for a set of answers, the same only for the same counts of learners, skills and days. */
const fingerprint = (answers: string, day: string): string =>
  `sum(${answers} * cityHash64(tenant, user_id, skill_id, ${day}))`;

/** 1: rows and sums are alike. */
const countUnlikeSums = `SELECT toUInt32(uniqExact(answers, fingerprint)) AS n FROM (
  SELECT count() AS answers, ${fingerprint('1', 'toDate(occurred_at)')} AS fingerprint
  FROM attempts WHERE ${ofMonth}
  UNION ALL
  SELECT sum(attempts) AS answers, ${fingerprint('attempts', 'day')} AS fingerprint
  FROM ${archivedLearnerSkill.name} FINAL WHERE month = {month:UInt32}
)`;

const countWithoutSnapshot = `SELECT toUInt32(count()) AS n FROM (
  SELECT tenant, user_id, max(learner_seq) AS last FROM attempts WHERE ${ofMonth} GROUP BY tenant, user_id
) AS r LEFT ANY JOIN (
  SELECT tenant, user_id, learner_seq FROM ${learnerSnapshots.name} FINAL
) AS s ON s.tenant = r.tenant AND s.user_id = r.user_id
WHERE s.learner_seq < r.last`;
