import type { ClickHouseClient } from '@clickhouse/client';
import { type JournalKind, journalColumns } from '../../contracts/journal/journal.js';
import { insertRows, RowContentError } from '../clickhouse/insert-rows.js';
import { groupChanges, groupMemberChanges, learnerProfileChanges } from '../schema/group-tables.js';
import {
  goalChanges,
  retractedAnswers,
  servedForecasts,
  skillChanges,
  webhooks,
} from '../schema/journal-tables.js';

const tables = {
  ...{ goal: goalChanges, skill: skillChanges, taken_back: retractedAnswers, webhook: webhooks },
  ...{ profile: learnerProfileChanges, group: groupChanges, group_member: groupMemberChanges },
  ...{ forecast: servedForecasts, forecast_2: servedForecasts },
};

const lineFeed = Buffer.from('\n');

export type JournalWarehouse = ReturnType<typeof createJournalWarehouse>;

/** Inserts can be repeated: each table has a natural key. */
export const createJournalWarehouse = (client: ClickHouseClient) => ({
  /** @returns null if the rows are on disk; otherwise the error's name, and no row is stored */
  insert: async (kind: JournalKind, rows: readonly Buffer[]): Promise<string | null> => {
    try {
      await insertRows(client, {
        table: tables[kind].name,
        columns: journalColumns[kind],
        chunks: [Buffer.concat(rows.flatMap((row) => [row, lineFeed]))],
        // One block: a rejected row rejects all.
        settings: { insert_deduplicate: 0 },
      });
      return null;
    } catch (error) {
      if (error instanceof RowContentError) return error.reason;
      throw error;
    }
  },
});
