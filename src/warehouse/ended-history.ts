/** What is left in ClickHouse of a learner's history that an erasure has ended. */
import type { ClickHouseClient } from '@clickhouse/client';
import { clockMs } from '../contracts/corrections.js';
import type { CorrectedRows } from '../services/correction-ports.js';
import { selectRows } from './client.js';
import { learnerTables } from './learner-tables.js';
import { quote } from './table.js';

/** Where the history ended. */
export interface EndedHistory {
  readonly tenant: string;
  readonly user_id: string;
  readonly partition: number;
  /** Outbox id of the correction that ends it. */
  readonly below_ms: number;
  readonly below_seq: number;
  /** Unix milliseconds of its last goal, and of its end. */
  readonly goal_until: number;
  readonly until: number;
}

export const endedHistory = (rows: CorrectedRows): EndedHistory => ({
  tenant: rows.tenant,
  user_id: rows.userId,
  partition: rows.partition,
  below_ms: rows.belowMs,
  below_seq: rows.belowSeq,
  goal_until: rows.goalAt,
  until: rows.belowMs + clockMs,
});

/** One row a table: what is left of the history. All zeros prove that it is erased. */
export const provingQuery: string = learnerTables
  .map(({ table, ended, endedCount = `SELECT count() FROM ${table.name} WHERE ${ended}` }) => {
    return `SELECT '${table.name}' AS place, toUInt64(assumeNotNull((${endedCount}))) AS remaining`;
  })
  .join('\nUNION ALL ');

/** @returns what is left, by place */
export async function countEnded(
  client: ClickHouseClient,
  history: EndedHistory,
  signal?: AbortSignal,
): Promise<Record<string, number>> {
  const found = await selectRows<{ place: string; remaining: string }>(client, provingQuery, signal, {
    ...history,
  });
  return Object.fromEntries(found.map(({ place, remaining }) => [place, Number(remaining)]));
}

/** SQL for statements that take no parameters. */
export const withValues = (sql: string, history: EndedHistory): string =>
  sql.replaceAll(/\{(\w+):\w+\}/g, (_, name: keyof EndedHistory) => {
    const value = history[name];
    return typeof value === 'number' ? `${value}` : quote(value);
  });
