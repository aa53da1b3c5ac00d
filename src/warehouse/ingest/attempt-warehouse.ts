import type { ClickHouseClient } from '@clickhouse/client';
import { attemptColumns, outboxColumns } from '../../contracts/answers/attempt-row.js';
import type { OutboxRange } from '../../contracts/outbox/job-data.js';
import { selectNumber, selectText, syncReplicas } from '../clickhouse/client.js';
import type { ClusterName } from '../clickhouse/ddl.js';
import { insertRows, singleBlockSettings } from '../clickhouse/insert-rows.js';
import { rollups } from '../schema/rollups.js';
import { buildRangeCondition, buildRangePart, repairPart } from './repair.js';

const columns = [...outboxColumns, ...attemptColumns];

export type AttemptWarehouse = ReturnType<typeof createAttemptWarehouse>;

/** An aborted insert may still succeed on the server: retry it only with the same token. */
export const createAttemptWarehouse = (client: ClickHouseClient, cluster: ClusterName = null) => ({
  /**
   * Inserts one block, also into every rollup. Repeating one of the last 10,000 tokens completes an interrupted
   * insert, except after a kill of ClickHouse, which may drop the repeat (`completeBlock`).
   * @throws RowContentError: no row is stored, unless a rollup rejected them
   */
  insert: (chunks: readonly Buffer[], token: string, signal?: AbortSignal): Promise<void> => {
    const settings = { ...singleBlockSettings, insert_deduplication_token: token };
    return insertRows(client, { table: 'attempts', columns, chunks, settings, signal });
  },

  countStored: async (ranges: readonly OutboxRange[], signal?: AbortSignal): Promise<number> => {
    await syncReplicas(client, 'attempts', cluster, signal);
    const query = `SELECT toUInt32(count()) AS present FROM attempts WHERE ${buildRangeCondition(ranges)}`;
    return selectNumber(client, query, { signal });
  },

  /** Each row as `partition\tms\tseq`. Call `countStored` first, which waits for the replicas. */
  findStoredRows: async (ranges: readonly OutboxRange[], signal?: AbortSignal): Promise<Set<string>> => {
    const query = `SELECT partition_id, outbox_ms, outbox_seq FROM attempts WHERE ${buildRangeCondition(ranges)}`;
    const lines = await selectText(client, query, { signal });
    return new Set(lines.split('\n').filter((line) => line !== ''));
  },

  /** Only the running drain job of the partitions may call it. @returns names of repaired rollups */
  repairRollups: async (ranges: readonly OutboxRange[], signal?: AbortSignal): Promise<string[]> => {
    const repaired: string[] = [];
    for (const rollup of rollups) {
      const part = buildRangePart(rollup, ranges);
      if (await repairPart({ client, cluster, signal }, rollup, part)) repaired.push(rollup.table.name);
    }
    return repaired;
  },
});
