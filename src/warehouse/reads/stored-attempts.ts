/** A learner's answers, read back out of ClickHouse as rows. */
import type { ClickHouseClient } from '@clickhouse/client';
import { rowColumns } from '../../contracts/attempt-row.js';
import { decodeAttemptRow } from '../../contracts/attempt-row-reader.js';
import type {
  AttemptRange,
  FoundAttempt,
  StoredAttempts,
  StoredHistories,
} from '../../services/read/attempt-ports.js';
import { mapInSlices } from '../../slices.js';
import { createSnapshotStore } from '../schema/learner-snapshots.js';

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

/**
 * Numbers have no gaps, so what is asked for nearly always stands close together; only where some are missing, the whole
 * range is gone through.
 */
export const createStoredAttempts = (client: ClickHouseClient): StoredAttempts => ({
  read: async (range) => {
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

/** Rows before the snapshot: those are dropped only when it is there. */
export const createStoredHistories = (client: ClickHouseClient): StoredHistories => ({
  read: async (tenant, userId, to) => {
    const range = { tenant, userId, from: 1, to, order: 'oldest first', atMost: to } as const;
    const stored = await selectLines(client, range);
    const snapshots = await createSnapshotStore(client).latest({ tenant, from: userId, to: userId });
    return { stored, snapshot: snapshots.get(userId) ?? null };
  },
});

const select = async (client: ClickHouseClient, range: AttemptRange): Promise<FoundAttempt[]> =>
  mapInSlices((await selectLines(client, range)).split('\n').slice(0, -1), found);

async function selectLines(client: ClickHouseClient, { order, ...range }: AttemptRange): Promise<string> {
  const result = await client.query({
    query: query(order),
    format: 'TabSeparated',
    query_params: range,
    abort_signal: AbortSignal.timeout(timeoutMs),
  });
  return result.text();
}

const found = (line: string): FoundAttempt => ({ place: 'clickhouse', row: decodeAttemptRow(line) });
