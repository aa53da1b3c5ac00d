import { Readable } from 'node:stream';
import type { ClickHouseClient, ClickHouseSettings } from '@clickhouse/client';
import { type JournalKind, journalColumns } from '../../contracts/journal.js';
import { refusalOf } from '../clickhouse/content-errors.js';
import type { Table } from '../clickhouse/table.js';
import { goalChanges, servedForecasts, skillChanges } from '../schema/journal-tables.js';
import { takenBack } from '../schema/record-tables.js';

const tables: Readonly<Record<JournalKind, Table>> = {
  goal: goalChanges,
  skill: skillChanges,
  forecast: servedForecasts,
  taken_back: takenBack,
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

const lineFeed = Buffer.from('\n');

export type JournalWarehouse = ReturnType<typeof createJournalWarehouse>;

/** The tables of the journal. A row that is inserted again shows once: each has a natural key. */
export function createJournalWarehouse(client: ClickHouseClient) {
  return {
    /**
     * Inserts rows of one kind. Resolves when they are on the disk, with null, or with the name of the error where
     * ClickHouse refuses the content of at least one of them: then none is stored. Rejects for everything else.
     */
    insert: async (kind: JournalKind, rows: readonly Buffer[]): Promise<string | null> => {
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
        const refusal = refusalOf(error);
        if (refusal === null) throw error;
        return refusal;
      }
    },
  };
}
