import { Readable } from 'node:stream';
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import { outboxColumns, rowColumns } from '../../contracts/attempt-row.js';
import type { OutboxRange } from '../../contracts/jobs.js';
import { selectRows } from '../clickhouse/client.js';
import type { Cluster } from '../clickhouse/cluster.js';
import { ContentRefused, refusalOf } from '../clickhouse/content-errors.js';
import { rollups } from '../schema/rollups.js';
import { complete, inRanges, partOfRanges, repairPart } from './repair.js';

/** More rows than any block has: nothing on the way to the parts may split it. */
const wholeBlock = '1000000';

/**
 * One INSERT is one block with one token, in the table and in each view, and the same again on a retry: parts
 * that were cut by threads' timing would bear tokens that a retry does not repeat.
 */
const insertSettings: ClickHouseSettings = {
  async_insert: 0,
  insert_deduplicate: 1,
  deduplicate_blocks_in_dependent_materialized_views: 1,
  input_format_parallel_parsing: 0,
  // Unix seconds of few digits: best effort, the newer servers' default, takes them for parts of a date.
  date_time_input_format: 'basic',
  max_insert_block_size: wholeBlock,
  min_insert_block_size_rows: wholeBlock,
  min_insert_block_size_bytes: '0',
  max_block_size: wholeBlock,
  max_insert_threads: '1',
  parallel_view_processing: 0,
  wait_end_of_query: 1,
};

const columns: [string, ...string[]] = [...outboxColumns, ...rowColumns];

export type AttemptWarehouse = ReturnType<typeof createAttemptWarehouse>;

/** The table `attempts` with its rollups. A signal ends the call, not always what the server is doing. */
export function createAttemptWarehouse(client: ClickHouseClient, cluster: Cluster = null) {
  /**
   * Inserts the rows as one block. Resolves only when the table and every rollup have them. The same rows under the same
   * token, among the last 10,000 blocks, count once in the table and in each rollup, and complete whatever an interrupted
   * insert left out.
   * @throws ContentRefused: the table has none of the rows, unless it is a rollup that refuses them
   */
  async function insert(chunks: readonly Buffer[], token: string, signal?: AbortSignal): Promise<void> {
    try {
      await client.insert({
        table: 'attempts',
        columns,
        format: 'TabSeparated',
        values: Readable.from(chunks, { objectMode: false }),
        clickhouse_settings: { ...insertSettings, insert_deduplication_token: token },
        ...(signal && { abort_signal: signal }),
      });
    } catch (error) {
      const refusal = refusalOf(error);
      throw refusal === null ? error : new ContentRefused(refusal);
    }
  }

  /** How many rows of the ranges the table has. */
  async function countPresent(ranges: readonly OutboxRange[], signal?: AbortSignal): Promise<number> {
    await complete(client, 'attempts', cluster, signal);
    const query = `SELECT toUInt32(count()) AS present FROM attempts WHERE ${inRanges(ranges)}`;
    const [row] = await selectRows<{ present: number }>(client, query, signal);
    return row?.present ?? 0;
  }

  /** Which rows of the ranges the table has, each as `partition\tms\tseq`. */
  async function presentRows(ranges: readonly OutboxRange[], signal?: AbortSignal): Promise<Set<string>> {
    const query = `SELECT partition_id, outbox_ms, outbox_seq FROM attempts WHERE ${inRanges(ranges)}`;
    const result = await client.query({
      query,
      format: 'TabSeparated',
      ...(signal && { abort_signal: signal }),
    });
    return new Set((await result.text()).split('\n').filter((line) => line !== ''));
  }

  /**
   * Makes the rollups of all days that the ranges touch agree with the table. The caller holds the partitions: nobody else
   * inserts their rows meanwhile.
   * @returns names of the rollups that had to be computed again
   */
  async function repairRollups(ranges: readonly OutboxRange[], signal?: AbortSignal): Promise<string[]> {
    const repaired: string[] = [];
    for (const rollup of rollups) {
      const part = partOfRanges(rollup, ranges);
      if (await repairPart({ client, cluster, signal }, rollup, part)) repaired.push(rollup.table.name);
    }
    return repaired;
  }

  return { insert, countPresent, presentRows, repairRollups };
}
