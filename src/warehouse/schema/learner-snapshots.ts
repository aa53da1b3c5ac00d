/** Learners' states after the last of their answers whose rows were dropped for their age: replays begin there. */
import { text } from 'node:stream/consumers';
import type { ClickHouseClient } from '@clickhouse/client';
import { rowColumns } from '../../contracts/attempt-row.js';
import { decodeAttemptRow } from '../../contracts/attempt-row-reader.js';
import type { LearnerPage, PlacedRow, SnapshotStore } from '../../services/retention/retention-ports.js';
import { selectRows } from '../clickhouse/client.js';
import type { Table } from '../clickhouse/table.js';

/** A learner's last snapshot replaces those before; until parts are merged, FINAL tells. */
export const learnerSnapshots: Table = {
  name: 'learner_snapshots',
  comment:
    'State of a learner after the last of the answers that are no longer in attempts; read it with FINAL',
  engine: 'ReplacingMergeTree(learner_seq)',
  columns: [
    { name: 'tenant', type: 'LowCardinality(String)', comment: 'Owner' },
    { name: 'user_id', type: 'String', codec: 'ZSTD(1)', comment: 'Learner' },
    { name: 'partition_id', type: 'UInt16', comment: 'Redis partition of the learner' },
    {
      name: 'learner_seq',
      type: 'UInt32',
      comment: 'Number of the last answer that the state has; rows up to it may be in attempts still',
    },
    { name: 'month', type: 'UInt32', comment: 'Month of arrival, as 202601, with which it was made' },
    {
      name: 'state',
      type: 'String',
      codec: 'ZSTD(1)',
      comment:
        "The learner's records in Redis, as JSON with a version (src/store/learners/snapshot-codec.ts)",
    },
  ],
  orderBy: '(tenant, user_id)',
  shardBy: 'cityHash64(tenant, user_id)',
  settings: { fsync_after_insert: 1, fsync_part_directory: 1 },
};

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

export function createSnapshotStore(client: ClickHouseClient): SnapshotStore {
  async function latest(page: LearnerPage): Promise<Map<string, string>> {
    const query = `SELECT user_id AS userId, state FROM ${learnerSnapshots.name} FINAL WHERE ${ofPage}`;
    const rows = await selectRows<{ userId: string; state: string }>(client, query, undefined, { ...page });
    return new Map(rows.map(({ userId, state }) => [userId, state]));
  }

  async function rowsUpTo(month: number, page: LearnerPage): Promise<PlacedRow[]> {
    const { stream } = await client.exec({
      query: selectPage,
      query_params: { ...page, month, reach: monthAfter(month) },
      clickhouse_settings: { date_time_output_format: 'unix_timestamp', wait_end_of_query: 1 },
    });
    return (await text(stream)).split('\n').slice(0, -1).map(decodePlaced);
  }

  return {
    latest,
    rowsUpTo,
    save: async (month, tenant, snapshots) => {
      if (snapshots.length === 0) return;
      await client.insert({
        table: learnerSnapshots.name,
        columns: ['tenant', 'user_id', 'partition_id', 'learner_seq', 'month', 'state'],
        format: 'JSONEachRow',
        values: snapshots.map(({ userId, partition, learnerSeq, state }) => ({
          tenant,
          user_id: userId,
          partition_id: partition,
          learner_seq: learnerSeq,
          month,
          state,
        })),
      });
    },
  };
}

function decodePlaced(line: string): PlacedRow {
  const end = line.lastIndexOf('\t');
  return { row: decodeAttemptRow(line.slice(0, end)), partition: Number(line.slice(end + 1)) };
}
