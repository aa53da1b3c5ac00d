/** A learner's answers, read back out of ClickHouse as rows. */
import type { ClickHouseClient } from '@clickhouse/client';
import { type AttemptRow, decodeAttemptRow, rowColumns } from '../../contracts/attempt-row.js';
import { mapInSlices } from '../../slices.js';
import { selectRows } from '../clickhouse/client.js';
import { learnerSnapshots } from '../schema/archive.js';

/** Part of a learner's answers by their numbers, both bounds included. */
export interface AttemptRange {
  readonly tenant: string;
  readonly userId: string;
  readonly from: number;
  readonly to: number;
  readonly order: 'newest first' | 'oldest first';
  readonly atMost: number;
}

/** Times as they are in an encoded row. */
const columns = rowColumns
  .map((name) =>
    name.endsWith('_at') ? `toDecimalString(toUnixTimestamp64Milli(a.${name}) / 1000, 3)` : `a.${name}`,
  )
  .join(', ');

const direction = { 'newest first': 'DESC', 'oldest first': 'ASC' } as const;

const query = (order: AttemptRange['order']): string => `SELECT ${columns} FROM attempts AS a
WHERE tenant = {tenant:String} AND user_id = {userId:String} AND learner_seq BETWEEN {from:UInt32} AND {to:UInt32}
ORDER BY learner_seq ${direction[order]}, outbox_ms DESC, outbox_seq DESC
LIMIT 1 BY learner_seq LIMIT {atMost:UInt32}`;

/** A caller waits for the answer. */
const timeoutMs = 5000;

export type StoredAttempts = ReturnType<typeof createStoredAttempts>;

/**
 * Numbers have no gaps, so what is asked for nearly always stands close together; only where some are missing, the whole
 * range is gone through.
 */
export const createStoredAttempts = (client: ClickHouseClient) => ({
  /**
   * The first answers of the range, one for each number: of several that a Redis restored from an older copy gave the same
   * number, the one that was counted last. @throws Error when ClickHouse is unavailable or does not answer in a few seconds
   */
  read: async (range: AttemptRange): Promise<AttemptRow[]> => {
    const close = closeTogether(range);
    const rows = await select(client, close);
    const isAll = rows.length === range.atMost || (close.from === range.from && close.to === range.to);
    return isAll ? rows : select(client, range);
  },
});

const closeTogether = (range: AttemptRange): AttemptRange =>
  range.order === 'newest first'
    ? { ...range, from: Math.max(range.from, range.to - range.atMost + 1) }
    : { ...range, to: Math.min(range.to, range.from + range.atMost - 1) };

const lastSnapshot = `SELECT state FROM ${learnerSnapshots.name} FINAL
WHERE tenant = {tenant:String} AND user_id = {userId:String}`;

export type StoredHistories = ReturnType<typeof createStoredHistories>;

export const createStoredHistories = (client: ClickHouseClient) => ({
  /**
   * A learner's rows up to a number, as lines, and the snapshot they follow on, null where none was dropped for its age.
   * Rows are read before the snapshot: they are dropped only when it is there.
   */
  read: async (tenant: string, userId: string, to: number) => {
    const range = { tenant, userId, from: 1, to, order: 'oldest first', atMost: to } as const;
    const stored = await selectLines(client, range);
    const [last] = await selectRows<{ state: string }>(client, lastSnapshot, undefined, { tenant, userId });
    return { stored, snapshot: last?.state ?? null };
  },
});

const select = async (client: ClickHouseClient, range: AttemptRange): Promise<AttemptRow[]> =>
  mapInSlices((await selectLines(client, range)).split('\n').slice(0, -1), decodeAttemptRow);

async function selectLines(client: ClickHouseClient, { order, ...range }: AttemptRange): Promise<string> {
  const result = await client.query({
    query: query(order),
    format: 'TabSeparated',
    query_params: range,
    abort_signal: AbortSignal.timeout(timeoutMs),
  });
  return result.text();
}
