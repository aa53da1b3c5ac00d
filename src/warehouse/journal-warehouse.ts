import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';
import { type JournalKind, journalColumns } from '../contracts/journal.js';
import type { JournalWarehouse } from '../services/journal-ports.js';
import { goalChanges, servedForecasts, skillChanges } from './journal-tables.js';
import type { Table } from './table.js';

const tables: Readonly<Record<JournalKind, Table>> = {
  goal: goalChanges,
  skill: skillChanges,
  forecast: servedForecasts,
};

/** One block, so that a refused row leaves nothing behind, which ClickHouse never takes for a double. */
const insertSettings: ClickHouseSettings = {
  async_insert: 0,
  insert_deduplicate: 0,
  input_format_parallel_parsing: 0,
  // Unix milliseconds: best effort, the newer servers' default, is not for them.
  date_time_input_format: 'basic',
  wait_end_of_query: 1,
};

/**
 * Errors that a row's content makes: no other attempt and no other server would take it. Everything else (no table
 * yet, no memory, too many parts) is about the server and passes.
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

const lineFeed = Buffer.from('\n');

export function createJournalWarehouse(client: ClickHouseClient): JournalWarehouse {
  return {
    insert: async (kind, rows) => {
      try {
        await client.insert({
          table: tables[kind].name,
          columns: [...journalColumns[kind]],
          format: 'TabSeparated',
          values: Readable.from([Buffer.concat(rows.flatMap((row) => [row, lineFeed]))], {
            objectMode: false,
          }),
          clickhouse_settings: insertSettings,
        });
        return null;
      } catch (error) {
        if (!(error instanceof ClickHouseError) || !contentErrors.has(error.code)) throw error;
        return error.type ?? error.code;
      }
    },
  };
}
