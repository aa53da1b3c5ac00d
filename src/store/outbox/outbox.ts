/**
 * A stream per partition with an entry per commit. A counter stores the number of rows, because XLEN counts
 * entries. Entries leave the outbox by `trim`, `park`, `parkRows` and the completion of a correction.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import type { OutboxRange } from '../../contracts/outbox/job-data.js';
import { type LastRow, parseOutboxId, toLastRowId } from '../../contracts/outbox/outbox-ids.js';
import { computeSum, indices } from '../../lists.js';
import { fetchStreamLengths, sendPerKey } from '../redis/commands/bulk-operations.js';
import { defineScript, nowLua } from '../redis/commands/script.js';
import { mapRedisErrors, type RedisClient } from '../redis/connection/client.js';
import { readReplicated } from '../redis/connection/replication.js';
import { dueErasuresKey, markerKey, outboxKey, outboxRowCountKey } from '../redis/keys.js';
import {
  encodePage,
  isCorrection,
  parseOutboxEntry,
  type RawStreamEntry,
  type RowsEntry,
} from './outbox-page.js';
import { countParked, type OutboxEntry, parkEntry, parkRows, type RejectedRow } from './parked-rows.js';

/** TSV lines: outbox columns, then the encoded row. */
export interface OutboxBlock {
  ranges: OutboxRange[];
  rows: number;
  entries: number;
  chunks: Buffer[];
  /** Entries without rows. */
  unreadable: { partition: number; id: string }[];
}

export interface BlockLimits {
  /** Exceeded only by the rows of one entry. */
  maxRows: number;
  /** Soft: reading stops after the page that reaches it. */
  maxBytes: number;
}

export interface OutboxEpoch {
  /** Changes if a Redis server is restarted or replaced, which may lose acknowledged writes. */
  id: string;
  /** Redis' clock, Unix milliseconds. */
  ms: number;
}

export type Outbox = ReturnType<typeof createOutbox>;
export type PipelineFacts = Awaited<ReturnType<Outbox['facts']>>;

/** If another process trimmed a part of the range, the count is too low until the outbox is empty. */
const trimOutbox = defineScript(2)<[outbox: string, rowsKey: string, end: string, rows: number], null>(`
if redis.call('XTRIM', KEYS[1], 'MINID', '=', ARGV[1]) > 0 then redis.call('DECRBY', KEYS[2], ARGV[2]) end
if redis.call('XLEN', KEYS[1]) == 0 then redis.call('DEL', KEYS[2]) end
`);

/** About a millisecond of this event loop, which also serves requests. */
const pageEntries = 100;

export function createOutbox(redis: Redis | Cluster, partitions: number) {
  const partitionIndices = indices(partitions);

  /** `length`: rows, at least the number of entries. `due`: pending erasures. */
  async function readBacklog(selected: readonly number[]) {
    const [rows, lengths] = await Promise.all([
      countPendingRows(redis, selected),
      fetchStreamLengths(redis, selected.map(dueErasuresKey)),
    ]);
    return Promise.all(
      selected.map(async (partition, i) => {
        const length = rows[i] ?? 0;
        const due = lengths[i] ?? 0;
        return { partition, length, head: length > 0 ? await readHeadId(redis, partition) : null, due };
      }),
    );
  }

  /** The oldest rows, in fair shares of the partitions. */
  async function peek(selected: readonly number[], limits: BlockLimits): Promise<OutboxBlock> {
    const pendingRows = await countPendingRows(redis, selected);
    const batch = createBatch();
    const order = sortByRows(selected, pendingRows);
    for (const [i, partition] of order.entries()) {
      // Shorter outboxes leave a part of their share to longer ones.
      const rows = Math.ceil((limits.maxRows - batch.rows) / (order.length - i));
      await readRange(redis, batch, { partition, from: '-', to: '+', rows }, limits.maxBytes);
    }
    return batch;
  }

  /** Remaining rows of fixed ranges, with the same bytes as `peek` returned. */
  async function readRanges(
    ranges: readonly OutboxRange[],
    skippedRows?: ReadonlySet<string>,
  ): Promise<OutboxBlock> {
    const batch = createBatch();
    for (const range of ranges) {
      await readRange(redis, batch, { ...range, rows: Number.POSITIVE_INFINITY }, undefined, skippedRows);
    }
    return batch;
  }

  /** Idempotent. */
  async function trim(ranges: readonly OutboxRange[]): Promise<void> {
    await Promise.all(
      ranges.map(({ partition, to, rows }) =>
        trimOutbox(redis, outboxKey(partition), outboxRowCountKey(partition), nextId(to), rows),
      ),
    );
  }

  async function facts() {
    const [backlogs, parked, { ms }] = await Promise.all([
      readBacklog(partitionIndices),
      countParked(redis, partitionIndices.map(outboxKey)),
      readEpoch(redis),
    ]);
    const oldest = Math.min(
      ms,
      ...backlogs.flatMap(({ head }) => (head === null ? [] : [parseOutboxId(head).ms])),
    );
    return {
      outboxLength: computeSum(backlogs.map(({ length }) => length)),
      erasuresDue: computeSum(backlogs.map(({ due }) => due)),
      /** Age of the oldest entry, which may be a correction, on Redis' clock. 0 if the outbox is empty. */
      oldestPendingSeconds: (ms - oldest) / 1000,
      ...parked,
    };
  }

  return {
    readBacklog,
    peek,
    readRanges,
    trim,
    park: (partition: number, id: string, reason: string) =>
      parkEntry(redis, outboxKey(partition), id, reason),
    parkRows: (entry: OutboxEntry, rejected: readonly RejectedRow[]) => parkRows(redis, entry, rejected),
    facts,
    readEpoch: () => readEpoch(redis),
  };
}

const createBatch = (): OutboxBlock => ({ ranges: [], rows: 0, entries: 0, chunks: [], unreadable: [] });

async function readHeadId(redis: Redis | Cluster, partition: number): Promise<string | null> {
  const [first] = await mapRedisErrors(redis.xrange(outboxKey(partition), '-', '+', 'COUNT', 1));
  return first?.[0] ?? null;
}

const sortByRows = (partitions: readonly number[], pendingRows: readonly number[]): number[] =>
  partitions
    .map((partition, i) => ({ partition, rows: pendingRows[i] ?? 0 }))
    .filter(({ rows }) => rows > 0)
    .sort((one, other) => one.rows - other.rows)
    .map(({ partition }) => partition);

/**
 * Stops at a correction, or after about `rows` rows. With REDIS_WAIT_REPLICAS, reads only rows that replicas
 * have: ClickHouse stores no answers that a failover loses.
 */
const readRange = (
  redis: Redis | Cluster,
  batch: OutboxBlock,
  { partition, from, to, rows }: OutboxRange,
  maxBytes = Number.POSITIVE_INFINITY,
  skippedRows?: ReadonlySet<string>,
): Promise<void> =>
  readReplicated(redis, partition, async () => {
    let bytes = computeSum(batch.chunks.map((chunk) => chunk.length));
    let start = from;
    for (let remaining = rows; remaining > 0 && bytes < maxBytes; ) {
      const count = Math.min(pageEntries, remaining);
      const found = await redis.xrangeBuffer(outboxKey(partition), start, to, 'COUNT', count);
      const selected = selectEntries(found, remaining, remaining === rows);
      const entries = selected.filter(({ lines }) => lines.length > 0);
      const page = encodePage(partition, entries, skippedRows);
      addPage(batch, partition, entries, page);
      for (const { id, lines } of selected) if (lines.length === 0) batch.unreadable.push({ partition, id });
      if (selected.length < found.length || found.length < count) return;
      // The next page may arrive immediately.
      await nextTurn();
      bytes += page.bytes.length;
      remaining -= computeSum(entries.map(({ lines }) => lines.length));
      start = `(${selected.at(-1)?.id}`;
    }
  });

/**
 * Stops at the first correction.
 * @param allowsOversizedFirst even if the first entry has more than `maxRows` rows
 */
function selectEntries(
  found: readonly RawStreamEntry[],
  maxRows: number,
  allowsOversizedFirst: boolean,
): RowsEntry[] {
  const entries: RowsEntry[] = [];
  let rows = 0;
  for (const entry of found) {
    const parsed = parseOutboxEntry(entry);
    const hasRoom = rows + parsed.lines.length <= maxRows || (allowsOversizedFirst && rows === 0);
    if (isCorrection(entry) || !hasRoom) break;
    entries.push(parsed);
    rows += parsed.lines.length;
  }
  return entries;
}

function addPage(
  batch: OutboxBlock,
  partition: number,
  entries: readonly RowsEntry[],
  { rows, bytes }: ReturnType<typeof encodePage>,
): void {
  const [first, last] = [entries[0], entries.at(-1)];
  if (first === undefined || last === undefined) return;
  const current = batch.ranges.at(-1);
  if (current?.partition === partition) {
    current.to = last.id;
    current.rows += rows;
  } else batch.ranges.push({ partition, from: first.id, to: last.id, rows });
  batch.entries += entries.length;
  batch.rows += rows;
  if (rows > 0) batch.chunks.push(bytes);
}

function nextId(id: string): string {
  const { ms, seq } = parseOutboxId(id);
  return `${ms}-${seq + 1}`;
}

async function countPendingRows(redis: Redis | Cluster, partitions: readonly number[]): Promise<number[]> {
  const [entries, rows] = await Promise.all([
    fetchStreamLengths(redis, partitions.map(outboxKey)),
    sendPerKey<string | null>(redis, 'get', partitions.map(outboxRowCountKey)),
  ]);
  return entries.map((length, i) => (length === 0 ? 0 : Math.max(length, Number(rows[i] ?? 0))));
}

export async function readEpoch(redis: Redis | Cluster): Promise<OutboxEpoch> {
  const servers = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const epochs = await Promise.all(servers.map(readServerEpoch));
  const ids = epochs.map(({ id }) => id).sort();
  return { id: ids.join(), ms: Math.max(...epochs.map(({ ms }) => ms)) };
}

async function readServerEpoch(server: Redis): Promise<OutboxEpoch> {
  const [info, time] = await mapRedisErrors(Promise.all([server.info('server'), server.time()]));
  const id = /^run_id:(\w+)/m.exec(info)?.[1];
  if (id === undefined) throw new Error('Redis reports no run_id (INFO server)');
  return { id, ms: Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000) };
}

/** Last assigned id, even if its entry was removed; '' for a missing stream. */
export const lastIdLua = `
local function lastId(key)
  if redis.call('EXISTS', key) == 0 then return '' end
  local info = redis.call('XINFO', 'STREAM', key)
  for i = 1, #info, 2 do if info[i] == 'last-generated-id' then return info[i + 1] end end
end
`;

/** Null if the partition has no marker. */
const findLastEntry = defineScript(2)<[marker: string, outbox: string], [id: string, ms: string] | null>(`
${nowLua}
${lastIdLua}
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
return { lastId(KEYS[2]), now() }
`);

/** Skips partitions without a marker: they are new or need a rebuild. */
export async function readLastRows(client: RedisClient, partitions: number): Promise<LastRow[]> {
  const reads = indices(partitions).map((partition) => readLastRow(client, partition));
  return (await Promise.all(reads)).filter((row) => row !== null);
}

async function readLastRow(client: RedisClient, partition: number): Promise<LastRow | null> {
  const found = await findLastEntry(client, markerKey(partition), outboxKey(partition));
  if (found === null) return null;
  return { partition, ...toLastRowId(found[0] || '0-0'), readAt: Number(found[1]) };
}
