import type { ClickHouseClient } from '@clickhouse/client';
import { type JournalKind, journalColumns } from '../../contracts/journal.js';
import { ContentRefused, insertRows } from '../clickhouse/insert-rows.js';
import { goalChanges, servedForecasts, skillChanges, takenBack, webhooks } from '../schema/tables.js';

const tables = {
  ...{ goal: goalChanges, skill: skillChanges, forecast: servedForecasts, taken_back: takenBack },
  webhook: webhooks,
};

const lineFeed = Buffer.from('\n');

export type JournalWarehouse = ReturnType<typeof createJournalWarehouse>;

/** The tables of the journal. A row that is inserted again shows once: each has a natural key. */
export const createJournalWarehouse = (client: ClickHouseClient) => ({
  /**
   * Inserts rows of one kind. Resolves when they are on the disk, with null, or with the name of the error where
   * ClickHouse refuses the content of at least one of them: then none is stored. Rejects for everything else.
   */
  insert: async (kind: JournalKind, rows: readonly Buffer[]): Promise<string | null> => {
    try {
      await insertRows(client, {
        table: tables[kind].name,
        columns: journalColumns[kind],
        chunks: [Buffer.concat(rows.flatMap((row) => [row, lineFeed]))],
        // One block, so that a refused row leaves nothing behind, which ClickHouse never takes for a double.
        settings: { insert_deduplicate: 0 },
      });
      return null;
    } catch (error) {
      if (error instanceof ContentRefused) return error.reason;
      throw error;
    }
  },
});
