/** Learners' states after the last of their answers whose rows were dropped for their age: replays begin there. */
import { text } from 'node:stream/consumers';
import type { ClickHouseClient } from '@clickhouse/client';
import { type AttemptRow, decodeAttemptRow, rowColumns } from '../../contracts/attempt-row.js';
import { selectRows } from '../clickhouse/client.js';
import { learnerSnapshots } from '../schema/archive.js';

/** Learners of one tenant from the first to the last id, both included, in the order of their bytes. */
export interface LearnerPage {
  readonly tenant: string;
  readonly from: string;
  readonly to: string;
}

export interface LearnerSnapshot {
  readonly userId: string;
  readonly partition: number;
  /** Number of the last answer that the state has. */
  readonly learnerSeq: number;
  readonly state: string;
}

const ofPage = 'tenant = {tenant:String} AND user_id BETWEEN {from:String} AND {to:String}';

/** The page's rows with the number and the version of each learner's last answer up to the month. */
const selectPage = `SELECT ${rowColumns.join(', ')}, partition_id FROM attempts
JOIN (
  SELECT user_id, max(learner_seq) AS last_seq, argMax(learner_version, learner_seq) AS last_version
  FROM attempts WHERE ${ofPage} AND toYYYYMM(received_at) <= {month:UInt32} GROUP BY user_id
) AS l USING (user_id)
WHERE ${ofPage} AND toYYYYMM(received_at) <= {reach:UInt32}
  AND (learner_seq <= last_seq OR (last_version > 0 AND learner_version = last_version))
ORDER BY user_id, learner_seq FORMAT TabSeparated`;

/** Answers counted before the month's last one arrived at most a clock's error later: in the month after, the latest. */
const monthAfter = (month: number): number => (month % 100 === 12 ? month + 89 : month + 1);

export type LearnerSnapshots = ReturnType<typeof createLearnerSnapshots>;

export const createLearnerSnapshots = (client: ClickHouseClient) => ({
  /** States by user id. */
  latest: async (page: LearnerPage): Promise<Map<string, string>> => {
    const query = `SELECT user_id AS userId, state FROM ${learnerSnapshots.name} FINAL WHERE ${ofPage}`;
    const rows = await selectRows<LearnerSnapshot>(client, query, undefined, { ...page });
    return new Map(rows.map(({ userId, state }) => [userId, state]));
  },

  /**
   * The learners' rows up to the last one that arrived in the month or before, with what was committed together with it,
   * in the order of `learner_seq`, and the Redis partition of each.
   */
  rowsUpTo: async (month: number, page: LearnerPage): Promise<{ row: AttemptRow; partition: number }[]> => {
    const { stream } = await client.exec({
      query: selectPage,
      query_params: { ...page, month, reach: monthAfter(month) },
      clickhouse_settings: { date_time_output_format: 'unix_timestamp', wait_end_of_query: 1 },
    });
    const lines = (await text(stream)).split('\n').slice(0, -1);
    return lines.map((line) => {
      const end = line.lastIndexOf('\t');
      return { row: decodeAttemptRow(line.slice(0, end)), partition: Number(line.slice(end + 1)) };
    });
  },

  /** A learner's later snapshot replaces the earlier one. */
  save: async (month: number, tenant: string, snapshots: readonly LearnerSnapshot[]): Promise<void> => {
    if (snapshots.length === 0) return;
    await client.insert({
      table: learnerSnapshots.name,
      columns: ['tenant', 'user_id', 'partition_id', 'learner_seq', 'month', 'state'],
      format: 'JSONCompactEachRow',
      values: snapshots.map((one) => [tenant, one.userId, one.partition, one.learnerSeq, month, one.state]),
    });
  },
});
