/**
 * The outbox in Redis: one stream per partition, of an entry for each commit (watched-learners.ts), read and
 * trimmed here. How many rows wait stands beside it, for the length of a stream counts entries.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import type { PendingCorrection } from '../../contracts/corrections.js';
import type { OutboxRange } from '../../contracts/jobs.js';
import { parseId } from '../../contracts/outbox-ids.js';
import { indices } from '../../lists.js';
import { dueKey, outboxKey, outboxRowsKey, parkedBound, parkedKey, partitionPrefix } from '../redis/keys.js';
import { readReplicated } from '../redis/replication.js';
import { defineScript } from '../redis/script.js';
import { streamLengths, textsOf } from '../redis/streams.js';
import {
  correctionOf,
  encodePage,
  isCorrection,
  passable,
  type RowsEntry,
  rowsEntry,
  type StreamEntry,
} from './outbox-page.js';
import { parkEntry, parkRows, type RefusedRow, type StoredEntry } from './parked.js';

/** Rows of the outbox as TSV lines: outbox columns, then the encoded row (contracts/attempt-row.ts). */
export interface OutboxBatch {
  /** One per partition that has rows here, with the first and last id that were read. */
  ranges: OutboxRange[];
  rows: number;
  /** Entries that these rows are of. */
  entries: number;
  /** Whole lines, each ending in a line feed, in the order of the outbox. */
  chunks: Buffer[];
  /** Entries between the rows that hold no row at all, which no table could take. */
  unreadable: { partition: number; id: string }[];
  /** Erasures before, among and behind the rows, in order; the ranges have those that have rows behind them. */
  erasures: PendingCorrection[];
}

export interface BatchLimits {
  /** Beyond it only what is of one entry. */
  maxRows: number;
  /** Soft: reading stops after the page that reaches it. */
  maxBytes: number;
}

export interface PartitionBacklog {
  partition: number;
  length: number;
  /** Id of the oldest entry, null when there is none. */
  head: string | null;
  /** Erasures that left the outbox and are not carried out. */
  due: number;
}

/** Identity of the Redis data in use, and its clock. */
export interface OutboxEpoch {
  /** Changes whenever a Redis server was restarted or replaced, so that acknowledged writes may be gone. */
  id: string;
  /** Redis' clock, Unix milliseconds. */
  ms: number;
}

/** Figures of the pipeline for health and metrics, the same in every process. */
export interface PipelineFacts {
  outboxLength: number;
  /** Erasures that left the outbox and are not carried out. */
  erasuresDue: number;
  /** Age of the oldest entry by Redis' clock; 0 when nothing waits. */
  oldestPendingSeconds: number;
  /** Rows put aside because ClickHouse refused their content. */
  parked: number;
  /** Partitions whose parked rows are at their bound: the next one that is refused waits, and what is behind it. */
  fullyParked: number;
}

export type Outbox = ReturnType<typeof createOutbox>;

/**
 * Removes entries whose rows are stored, and puts the erasures before, among and behind them where the due ones are.
 * KEYS: the partition's prefix. ARGV: the smallest id that stays in the outbox, '' where no row is meant; number of rows
 *   that go; ids of erasures and their texts, in turn and in order. Those that are not there (any more) are passed over.
 */
const trimOutbox = defineScript(1)<[prefix: string, end: string, rows: number, ...passed: string[]], null>(`
local function standsIn(stream, id, text)
  local entry = redis.call('XRANGE', stream, id, id)[1]
  return entry and entry[2][1] == 'c' and entry[2][2] == text
end
local out = KEYS[1] .. ':out'
for i = 3, #ARGV, 2 do
  if standsIn(out, ARGV[i], ARGV[i + 1]) then
    redis.call('XADD', KEYS[1] .. ':due', ARGV[i], 'c', ARGV[i + 1])
    redis.call('XDEL', out, ARGV[i])
  end
end
if ARGV[1] ~= '' and redis.call('XTRIM', out, 'MINID', '=', ARGV[1]) > 0 then
  redis.call('DECRBY', out .. ':rows', ARGV[2])
end
-- Who trims what another one has trimmed in part makes the number wrong, until here.
if redis.call('XLEN', out) == 0 then redis.call('DEL', out .. ':rows') end
`);

/** Entries asked for at a time: a fraction of a millisecond of Redis and about one of this loop, which both serve answers. */
const pageEntries = 100;

/**
 * The answers that are committed in Redis and not yet known to be in ClickHouse.
 *
 * @param redis a connection whose commands wait for a reconnect or fail; both are safe here
 */
export function createOutbox(redis: Redis | Cluster, partitions: number) {
  const all = indices(partitions);

  async function backlog(wanted: readonly number[]): Promise<PartitionBacklog[]> {
    const [rows, lengths] = await Promise.all([
      waitingRows(redis, wanted),
      streamLengths(redis, wanted.map(dueKey)),
    ]);
    return Promise.all(
      wanted.map(async (partition, i) => {
        const length = rows[i] ?? 0;
        const due = lengths[i] ?? 0;
        return { partition, length, head: length > 0 ? await headOf(redis, partition) : null, due };
      }),
    );
  }

  /** The oldest rows of the partitions, shared fairly among them; removes nothing. */
  async function next(wanted: readonly number[], limits: BatchLimits): Promise<OutboxBatch> {
    const waiting = await waitingRows(redis, wanted);
    const batch = emptyBatch();
    const order = shortestFirst(wanted, waiting);
    for (const [i, partition] of order.entries()) {
      // Short ones whole: what they leave goes to the longer ones.
      const rows = Math.ceil((limits.maxRows - batch.rows) / (order.length - i));
      await readRange(redis, batch, { partition, from: '-', to: '+', rows }, limits.maxBytes);
    }
    return batch;
  }

  /**
   * The rows of fixed ranges that are still there, byte for byte as `next` gave them.
   * @param skip rows to leave out, each as `partition\tms\tseq`
   */
  async function read(ranges: readonly OutboxRange[], skip?: ReadonlySet<string>): Promise<OutboxBatch> {
    const batch = emptyBatch();
    for (const range of ranges) {
      await readRange(redis, batch, { ...range, rows: Number.POSITIVE_INFINITY }, undefined, skip);
    }
    return batch;
  }

  /**
   * Removes every entry up to the end of each range, and puts the erasures that were read where the due ones are: in one
   * step for each partition. Doing it again does nothing.
   */
  async function trim({ ranges, erasures }: Pick<OutboxBatch, 'ranges' | 'erasures'>): Promise<void> {
    const touched = new Set([...ranges, ...erasures].map(({ partition }) => partition));
    await Promise.all(
      [...touched].map(async (partition) => {
        const range = ranges.find((one) => one.partition === partition);
        const [end, rows] = range === undefined ? ['', 0] : [after(range.to), range.rows];
        const passed = erasures.filter((erasure) => erasure.partition === partition);
        const texts = passed.flatMap(({ id, text }) => [id, text]);
        await trimOutbox(redis, partitionPrefix(partition), end, rows, ...texts);
      }),
    );
  }

  async function facts(): Promise<PipelineFacts> {
    const [waiting, parked, { ms }] = await Promise.all([
      backlog(all),
      streamLengths(redis, all.map(outboxKey).map(parkedKey)),
      epochOf(redis),
    ]);
    const heads = waiting.flatMap(({ head }) => (head === null ? [] : [parseId(head).ms]));
    return {
      outboxLength: sum(waiting.map(({ length }) => length)),
      erasuresDue: sum(waiting.map(({ due }) => due)),
      oldestPendingSeconds: heads.length === 0 ? 0 : Math.max(0, (ms - Math.min(...heads)) / 1000),
      parked: sum(parked),
      fullyParked: parked.filter((length) => length >= parkedBound).length,
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

const emptyBatch = (): OutboxBatch => ({
  ...{ ranges: [], rows: 0, entries: 0, chunks: [], unreadable: [] },
  ...{ erasures: [] },
});
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

async function headOf(redis: Redis | Cluster, partition: number): Promise<string | null> {
  const [first] = await redis.xrange(outboxKey(partition), '-', '+', 'COUNT', 1);
  return first?.[0] ?? null;
}

/** Those in which something waits. */
const shortestFirst = (partitions: readonly number[], waiting: readonly number[]): number[] =>
  partitions
    .map((partition, i) => ({ partition, rows: waiting[i] ?? 0 }))
    .filter(({ rows }) => rows > 0)
    .sort((one, other) => one.rows - other.rows)
    .map(({ partition }) => partition);

interface Reading {
  readonly batch: OutboxBatch;
  readonly partition: number;
  readonly skip?: ReadonlySet<string> | undefined;
}

/**
 * Appends the range's entries to the batch, page by page; `rows` is a bound, `-` and `+` are the stream's ends. They
 * are safe on the replicas where that is asked for: ClickHouse must not know of answers that a failover takes back.
 */
const readRange = (
  redis: Redis | Cluster,
  batch: OutboxBatch,
  { partition, from, to, rows }: OutboxRange,
  maxBytes = Number.POSITIVE_INFINITY,
  skip?: ReadonlySet<string>,
): Promise<void> =>
  readReplicated(redis, partition, async () => {
    let bytes = sum(batch.chunks.map((chunk) => chunk.length));
    let start = from;
    for (let left = rows; left > 0 && bytes < maxBytes; ) {
      const count = Math.min(pageEntries, left);
      const entries = await redis.xrangeBuffer(outboxKey(partition), start, to, 'COUNT', count);
      const last = entries.at(-1)?.[0].toString('latin1');
      if (last === undefined) return;
      const { passed, isStopped } = passable(entries);
      const page = append({ batch, partition, skip }, passed, left, left === rows);
      if (isStopped || page.isCut) return;
      // Redis is quicker than we are: its next page may be there at once and be read before all else that waits in the loop.
      await nextTurn();
      if (entries.length < count) return;
      bytes += page.bytes;
      left -= page.rows;
      start = after(last);
    }
  });

/**
 * Adds the first entries that have so many rows to the batch.
 *
 * @param withFirst takes one with rows in any case, however many
 * @returns how many rows were taken, bytes without those that are skipped, and whether an entry behind them had no room
 */
function append(
  { batch, partition, skip }: Reading,
  found: readonly StreamEntry[],
  maxRows: number,
  withFirst: boolean,
): { readonly rows: number; readonly bytes: number; readonly isCut: boolean } {
  const entries: RowsEntry[] = [];
  const ids: string[] = [];
  let [rows, isCut] = [0, false];
  for (const entry of found) {
    const id = entry[0].toString('latin1');
    if (isCorrection(entry)) batch.erasures.push(correctionOf(partition, entry));
    else {
      const read = rowsEntry(entry);
      isCut = (rows > 0 || !withFirst) && rows + read.lines.length > maxRows;
      if (isCut) break;
      if (read.lines.length === 0) {
        batch.unreadable.push({ partition, id });
        continue;
      }
      entries.push(read);
      rows += read.lines.length;
    }
    ids.push(id);
  }
  const page = encodePage(partition, entries, skip);
  widen(batch, partition, page.rows, ids);
  batch.entries += entries.length;
  batch.rows += page.rows;
  if (page.rows > 0) batch.chunks.push(page.bytes);
  return { rows, bytes: page.bytes.length, isCut };
}

/**
 * A range begins with the first erasure before its rows, so that who reads it again finds all that trimming it removes.
 * Without rows there is none: its blocks' tokens are made of the ranges.
 */
function widen({ ranges, erasures }: OutboxBatch, partition: number, rows: number, ids: string[]): void {
  const [from, to] = [ids[0], ids.at(-1)];
  if (from === undefined || to === undefined) return;
  const current = ranges.at(-1);
  if (current?.partition === partition) {
    current.to = to;
    current.rows += rows;
  } else if (rows > 0) {
    // Of this page, or of one before it that had no rows.
    const passed = erasures.find((erasure) => erasure.partition === partition)?.id;
    ranges.push({ partition, from: passed === undefined || ids.includes(passed) ? from : passed, to, rows });
  }
}

/** The smallest stream id above this one, short of the end of a sequence (2^53 entries in one millisecond). */
function after(id: string): string {
  const { ms, seq } = parseId(id);
  return `${ms}-${seq + 1}`;
}

/**
 * Rows that wait, and corrections among them: as many as there are entries, or more. A count that is too high, since a
 * drain that stood still has trimmed what another had, ends where the outbox is empty.
 */
async function waitingRows(redis: Redis | Cluster, partitions: readonly number[]): Promise<number[]> {
  const [entries, rows] = await Promise.all([
    streamLengths(redis, partitions.map(outboxKey)),
    textsOf(redis, partitions.map(outboxRowsKey)),
  ]);
  return entries.map((length, i) => (length === 0 ? 0 : Math.max(length, Number(rows[i] ?? 0))));
}

/** Redis gives each server process a new run_id; a failover shows as another server's. */
export async function epochOf(redis: Redis | Cluster): Promise<OutboxEpoch> {
  const servers = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const seen = await Promise.all(servers.map(identityOf));
  const ids = seen.map(({ id }) => id).sort();
  return { id: ids.join(), ms: Math.max(...seen.map(({ ms }) => ms)) };
}

async function identityOf(server: Redis): Promise<OutboxEpoch> {
  const [info, time] = await Promise.all([server.info('server'), server.time()]);
  const id = /^run_id:(\w+)/m.exec(info)?.[1];
  if (id === undefined) throw new Error('Redis does not say its run_id (INFO server)');
  return { id, ms: Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000) };
}
