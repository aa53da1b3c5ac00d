/** Inserting rows that were written elsewhere, as one block: all of them or none. */
import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';

/** More rows than any block has: nothing on the way to the parts may split it. */
const wholeBlock = '1000000';

/**
 * One INSERT is one block with one token, in the table and in each view, and the same again on a retry: parts
 * that were cut by threads' timing would bear tokens that a retry does not repeat.
 */
export const oneBlock: ClickHouseSettings = {
  insert_deduplicate: 1,
  deduplicate_blocks_in_dependent_materialized_views: 1,
  max_insert_block_size: wholeBlock,
  min_insert_block_size_rows: wholeBlock,
  min_insert_block_size_bytes: '0',
  max_block_size: wholeBlock,
  max_insert_threads: '1',
  parallel_view_processing: 0,
};

/** ClickHouse notes a token before it moves the part into place: who is killed in between needs another one. */
const maxTokens = 5;

/**
 * Inserts a block under one token after the other until nothing of it is missing.
 * @throws Error where the table does not take its rows
 */
export async function insertUntilThere(
  table: string,
  isMissing: () => Promise<boolean>,
  insert: (token: number) => Promise<unknown>,
): Promise<void> {
  for (let token = 0; await isMissing(); token++) {
    if (token === maxTokens) throw new Error(`${table} does not take its rows`);
    await insert(token);
  }
}

/**
 * Errors that a row's content makes: no other attempt and no other server would take it. Everything else (no table or
 * column, no memory, no disk, too many parts, read-only, not allowed) is about the server: it passes, and rows wait.
 */
const contentErrors = new Set([
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
]);

export class ContentRefused extends Error {
  /** @param reason name of ClickHouse's error; its text would quote the row */
  constructor(readonly reason: string) {
    super(`ClickHouse refuses the content of a row: ${reason}`);
  }
}

interface RowBlock {
  readonly table: string;
  readonly columns: readonly string[];
  /** TSV, cut anywhere. */
  readonly chunks: readonly Buffer[];
  readonly settings: ClickHouseSettings;
  readonly signal?: AbortSignal | undefined;
}

/** Resolves when the rows are on the disk. @throws ContentRefused, and the client's errors */
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
        // Unix times: best effort, the newer servers' default, takes those of few digits for parts of a date.
        date_time_input_format: 'basic',
        wait_end_of_query: 1,
        ...settings,
      },
      ...(signal && { abort_signal: signal }),
    });
  } catch (error) {
    if (!(error instanceof ClickHouseError) || !contentErrors.has(error.code)) throw error;
    throw new ContentRefused(error.type ?? error.code);
  }
}

/** Resolves when the rows are on the disk. @param values objects of the named columns */
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
