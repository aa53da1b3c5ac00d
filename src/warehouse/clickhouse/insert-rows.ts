import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';

const maxBlockRows = '1000000';

/** One INSERT is one block with one token: if thread timing split it, a retry would have other tokens. */
export const singleBlockSettings: ClickHouseSettings = {
  insert_deduplicate: 1,
  deduplicate_blocks_in_dependent_materialized_views: 1,
  max_insert_block_size: maxBlockRows,
  min_insert_block_size_rows: maxBlockRows,
  min_insert_block_size_bytes: '0',
  max_block_size: maxBlockRows,
  max_insert_threads: '1',
  parallel_view_processing: 0,
};

/** ClickHouse stores a token before the part: after a kill in between, only another token works. */
const maxTokens = 5;

export async function insertUntilStored(
  table: string,
  isMissing: () => Promise<boolean>,
  insert: (token: number) => Promise<unknown>,
): Promise<void> {
  for (let token = 0; await isMissing(); token++) {
    if (token === maxTokens)
      throw new Error(`ClickHouse did not store the rows of ${table} in ${maxTokens} attempts`);
    await insert(token);
  }
}

/** A retry would fail again. */
const contentErrorCodes = new Set([
  '6', // CANNOT_PARSE_TEXT
  '25', // CANNOT_PARSE_ESCAPE_SEQUENCE
  '26', // CANNOT_PARSE_QUOTED_STRING
  '27', // CANNOT_PARSE_INPUT_ASSERTION_FAILED
  '32', // ATTEMPT_TO_READ_AFTER_EOF
  '33', // CANNOT_READ_ALL_DATA
  '38', // CANNOT_PARSE_DATE
  '41', // CANNOT_PARSE_DATETIME
  '69', // ARGUMENT_OUT_OF_BOUND
  '70', // CANNOT_CONVERT_TYPE
  '72', // CANNOT_PARSE_NUMBER
  '117', // INCORRECT_DATA
  '321', // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
  '349', // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
  '469', // VIOLATED_CONSTRAINT
  '563', // CANNOT_READ_MAP_FROM_TEXT
]);

export class RowContentError extends Error {
  /** @param reason error name; the error's text would quote the row */
  constructor(readonly reason: string) {
    super(`ClickHouse rejected the content of a row: ${reason}`);
  }
}

interface RowBlock {
  readonly table: string;
  readonly columns: readonly string[];
  /** TSV; a chunk may end within a row. */
  readonly chunks: readonly Buffer[];
  readonly settings: ClickHouseSettings;
  readonly signal?: AbortSignal | undefined;
}

/** Resolves when the rows are on disk. @throws RowContentError, and the client's errors */
export async function insertRows(client: ClickHouseClient, block: RowBlock): Promise<void> {
  const { table, columns, chunks, settings, signal } = block;
  try {
    await client.insert({
      table,
      columns: columns as [string, ...string[]],
      format: 'TabSeparated',
      values: Readable.from(chunks, { objectMode: false }),
      clickhouse_settings: {
        async_insert: 0,
        input_format_parallel_parsing: 0,
        // best_effort, the default of newer servers, misreads short Unix times.
        date_time_input_format: 'basic',
        wait_end_of_query: 1,
        ...settings,
      },
      ...(signal && { abort_signal: signal }),
    });
  } catch (error) {
    if (!(error instanceof ClickHouseError) || !contentErrorCodes.has(error.code)) throw error;
    throw new RowContentError(error.type ?? error.code);
  }
}

export const insertObjects = (
  client: ClickHouseClient,
  table: string,
  values: readonly object[],
  settings: ClickHouseSettings = {},
) =>
  client.insert({
    table,
    format: 'JSONEachRow',
    values,
    clickhouse_settings: { async_insert: 0, wait_end_of_query: 1, ...settings },
  });
