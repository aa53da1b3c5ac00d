/**
 * A stream per partition with an entry per commit. A counter stores the number of rows, because XLEN counts
 * entries.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import type { OutboxRange } from '../../contracts/job-data.js';
import { type LastRow, parseOutboxId, toLastRowId } from '../../contracts/outbox-ids.js';
import { computeSum, indices } from '../../lists.js';
import { fetchStreamLengths, sendPerKey } from '../redis/bulk-operations.js';
import { mapRedisErrors, type RedisClient } from '../redis/client.js';
import { dueErasuresKey, markerKey, outboxKey, outboxRowCountKey } from '../redis/keys.js';
import { readReplicated } from '../redis/replication.js';
import { defineScript, nowLua } from '../redis/script.js';
import { encodePage, isCorrection, type RowsEntry, rowsEntry, type StreamEntry } from './outbox-page.js';
import { parkEntry, parkedFacts, parkRows, type RefusedRow, type StoredEntry } from './parked.js';

/** TSV lines: outbox columns, then the encoded row. */
export interface OutboxBatch {
  ranges: OutboxRange[];
  rows: number;
  entries: number;
  chunks: Buffer[];
  /** Entries without rows. */
  unreadable: { partition: number; id: string }[];
}

export interface BatchLimits {
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

/** After a partial trim by another process, the count is wrong until the outbox is empty. */
const trimOutbox = defineScript(2)<[outbox: string, rowsKey: string, end: string, rows: number], null>(`
if redis.call('XTRIM', KEYS[1], 'MINID', '=', ARGV[1]) > 0 then redis.call('DECRBY', KEYS[2], ARGV[2]) end
if redis.call('XLEN', KEYS[1]) == 0 then redis.call('DEL', KEYS[2]) end
`);

/** About a millisecond of this event loop, which also serves requests. */
const pageEntries = 100;

export function createOutbox(redis: Redis | Cluster, partitions: number) {
  const all = indices(partitions);

  /** `length`: rows. `due`: pending erasures. */
  async function backlog(wanted: readonly number[]) {
    const [rows, lengths] = await Promise.all([
      waitingRows(redis, wanted),
      fetchStreamLengths(redis, wanted.map(dueErasuresKey)),
    ]);
    return Promise.all(
      wanted.map(async (partition, i) => {
        const length = rows[i] ?? 0;
        const due = lengths[i] ?? 0;
        return { partition, length, head: length > 0 ? await headOf(redis, partition) : null, due };
      }),
    );
  }

  /** The oldest rows, in fair shares of the partitions. */
  async function next(wanted: readonly number[], limits: BatchLimits): Promise<OutboxBatch> {
    const waiting = await waitingRows(redis, wanted);
    const batch = emptyBatch();
    const order = shortestFirst(wanted, waiting);
    for (const [i, partition] of order.entries()) {
      // Shorter outboxes leave a part of their share to longer ones.
      const rows = Math.ceil((limits.maxRows - batch.rows) / (order.length - i));
      await readRange(redis, batch, { partition, from: '-', to: '+', rows }, limits.maxBytes);
    }
    return batch;
  }

  /** Remaining rows of fixed ranges, with the same bytes as `peek` returned. */
  async function read(ranges: readonly OutboxRange[], skip?: ReadonlySet<string>): Promise<OutboxBatch> {
    const batch = emptyBatch();
    for (const range of ranges) {
      await readRange(redis, batch, { ...range, rows: Number.POSITIVE_INFINITY }, undefined, skip);
    }
    return batch;
  }

  /** Idempotent. */
  async function trim(ranges: readonly OutboxRange[]): Promise<void> {
    await Promise.all(
      ranges.map(({ partition, to, rows }) =>
        trimOutbox(redis, outboxKey(partition), outboxRowCountKey(partition), after(to), rows),
      ),
    );
  }

  async function facts() {
    const [waiting, parked, { ms }] = await Promise.all([
      backlog(all),
      parkedFacts(redis, all.map(outboxKey)),
      epochOf(redis),
    ]);
    const oldest = Math.min(
      ms,
      ...waiting.flatMap(({ head }) => (head === null ? [] : [parseOutboxId(head).ms])),
    );
    return {
      outboxLength: computeSum(waiting.map(({ length }) => length)),
      erasuresDue: computeSum(waiting.map(({ due }) => due)),
      /** 0 if the outbox is empty. */
      oldestPendingSeconds: (ms - oldest) / 1000,
      ...parked,
    };
  }

  return {
    backlog,
    next,
    read,
    trim,
    park: (partition: number, id: string, reason: string) =>
      parkEntry(redis, outboxKey(partition), id, reason),
    parkRows: (entry: StoredEntry, refused: readonly RefusedRow[]) => parkRows(redis, entry, refused),
    facts,
    epoch: () => epochOf(redis),
  };
}

const emptyBatch = (): OutboxBatch => ({ ranges: [], rows: 0, entries: 0, chunks: [], unreadable: [] });

async function headOf(redis: Redis | Cluster, partition: number): Promise<string | null> {
  const [first] = await mapRedisErrors(redis.xrange(outboxKey(partition), '-', '+', 'COUNT', 1));
  return first?.[0] ?? null;
}

const shortestFirst = (partitions: readonly number[], waiting: readonly number[]): number[] =>
  partitions
    .map((partition, i) => ({ partition, rows: waiting[i] ?? 0 }))
    .filter(({ rows }) => rows > 0)
    .sort((one, other) => one.rows - other.rows)
    .map(({ partition }) => partition);

/**
 * Stops at a correction, or after about `rows` rows. With REDIS_WAIT_REPLICAS, reads only rows that replicas
 * have: ClickHouse stores no answers that a failover loses.
 */
const readRange = (
  redis: Redis | Cluster,
  batch: OutboxBatch,
  { partition, from, to, rows }: OutboxRange,
  maxBytes = Number.POSITIVE_INFINITY,
  skip?: ReadonlySet<string>,
): Promise<void> =>
  readReplicated(redis, partition, async () => {
    let bytes = computeSum(batch.chunks.map((chunk) => chunk.length));
    let start = from;
    for (let left = rows; left > 0 && bytes < maxBytes; ) {
      const count = Math.min(pageEntries, left);
      const found = await redis.xrangeBuffer(outboxKey(partition), start, to, 'COUNT', count);
      const taken = takeRows(found, left, left === rows);
      const entries = taken.filter(({ lines }) => lines.length > 0);
      const page = encodePage(partition, entries, skip);
      add(batch, partition, entries, page);
      for (const { id, lines } of taken) if (lines.length === 0) batch.unreadable.push({ partition, id });
      if (taken.length < found.length || found.length < count) return;
      // The next page may arrive immediately.
      await nextTurn();
      bytes += page.bytes.length;
      left -= computeSum(entries.map(({ lines }) => lines.length));
      start = `(${taken.at(-1)?.id}`;
    }
  });

/**
 * Stops at the first correction.
 * @param includesFirst even if the first entry has more than `maxRows` rows
 */
function takeRows(found: readonly StreamEntry[], maxRows: number, withFirst: boolean): RowsEntry[] {
  const entries: RowsEntry[] = [];
  let rows = 0;
  for (const entry of found) {
    const read = rowsEntry(entry);
    const hasRoom = rows + read.lines.length <= maxRows || (withFirst && rows === 0);
    if (isCorrection(entry) || !hasRoom) break;
    entries.push(read);
    rows += read.lines.length;
  }
  return entries;
}

function add(
  batch: OutboxBatch,
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

function after(id: string): string {
  const { ms, seq } = parseOutboxId(id);
  return `${ms}-${seq + 1}`;
}

async function waitingRows(redis: Redis | Cluster, partitions: readonly number[]): Promise<number[]> {
  const [entries, rows] = await Promise.all([
    fetchStreamLengths(redis, partitions.map(outboxKey)),
    sendPerKey<string | null>(redis, 'get', partitions.map(outboxRowCountKey)),
  ]);
  return entries.map((length, i) => (length === 0 ? 0 : Math.max(length, Number(rows[i] ?? 0))));
}

export async function epochOf(redis: Redis | Cluster): Promise<OutboxEpoch> {
  const servers = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const seen = await Promise.all(servers.map(identityOf));
  const ids = seen.map(({ id }) => id).sort();
  return { id: ids.join(), ms: Math.max(...seen.map(({ ms }) => ms)) };
}

async function identityOf(server: Redis): Promise<OutboxEpoch> {
  const [info, time] = await mapRedisErrors(Promise.all([server.info('server'), server.time()]));
  const id = /^run_id:(\w+)/m.exec(info)?.[1];
  if (id === undefined) throw new Error('Redis does not say its run_id (INFO server)');
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
const lastEntryOf = defineScript(2)<[marker: string, outbox: string], [id: string, ms: string] | null>(`
${nowLua}
${lastIdLua}
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
return { lastId(KEYS[2]), now() }
`);

/** Skips partitions without a marker: they are new or need a rebuild. */
export async function lastRows(client: RedisClient, partitions: number): Promise<LastRow[]> {
  const asked = indices(partitions).map((partition) => lastRow(client, partition));
  return (await Promise.all(asked)).filter((row) => row !== null);
}

async function lastRow(client: RedisClient, partition: number): Promise<LastRow | null> {
  const found = await lastEntryOf(client, markerKey(partition), outboxKey(partition));
  if (found === null) return null;
  return { partition, ...toLastRowId(found[0] || '0-0'), readAt: Number(found[1]) };
}
