/** The outbox in Redis: one stream per partition, written by the commit script, read and trimmed here. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Cluster, type Redis } from 'ioredis';
import type { PendingCorrection } from '../contracts/corrections.js';
import type { OutboxRange } from '../contracts/jobs.js';
import type {
  BatchLimits,
  Outbox,
  OutboxBatch,
  OutboxEpoch,
  PartitionBacklog,
} from '../services/pipeline-ports.js';

import { dueKey, outboxKey, parkedBound, parkedKey, partitionPrefix } from './keys.js';
import {
  correctionOf,
  type EncodedPage,
  encodePage,
  idText,
  isCorrection,
  passable,
  type StreamEntry,
} from './outbox-page.js';
import { parkEntries, removeRows } from './parked.js';

import { readReplicated } from './replication.js';
import { streamLengths } from './stream-lengths.js';

/** Entries asked for at a time: a fraction of a millisecond of Redis and about one of this loop, which both serve answers. */
const pageRows = 200;

/** @param redis a connection whose commands wait for a reconnect or fail; both are safe here */
export function createOutbox(redis: Redis | Cluster, partitions: number): Outbox {
  const all = Array.from({ length: partitions }, (_, partition) => partition);

  async function backlog(wanted: readonly number[]): Promise<PartitionBacklog[]> {
    const lengths = await streamLengths(redis, [...wanted.map(outboxKey), ...wanted.map(dueKey)]);
    return Promise.all(
      wanted.map(async (partition, i) => {
        const length = lengths[i] ?? 0;
        const due = lengths[wanted.length + i] ?? 0;
        return { partition, length, head: length > 0 ? await headOf(redis, partition) : null, due };
      }),
    );
  }

  async function next(wanted: readonly number[], limits: BatchLimits): Promise<OutboxBatch> {
    const lengths = await streamLengths(redis, wanted.map(outboxKey));
    const batch = emptyBatch();
    for (const [partition, rows] of fairShares(wanted, lengths, limits.maxRows)) {
      await readRange(redis, batch, { partition, from: '-', to: '+', rows }, limits.maxBytes);
    }
    return batch;
  }

  async function read(ranges: readonly OutboxRange[], skip?: ReadonlySet<string>): Promise<OutboxBatch> {
    const batch = emptyBatch();
    for (const range of ranges) {
      await readRange(redis, batch, { ...range, rows: Number.POSITIVE_INFINITY }, undefined, skip);
    }
    return batch;
  }

  async function trim({ ranges, erasures }: Pick<OutboxBatch, 'ranges' | 'erasures'>): Promise<void> {
    const ends = new Map(ranges.map(({ partition, to }) => [partition, after(to)]));
    const touched = new Set([...ranges, ...erasures].map(({ partition }) => partition));
    await Promise.all(
      [...touched].map((partition) => {
        const passed = erasures.filter((erasure) => erasure.partition === partition);
        return trimPartition(redis, partition, ends.get(partition), passed);
      }),
    );
  }

  async function facts() {
    const [waiting, parked, { ms }] = await Promise.all([
      backlog(all),
      streamLengths(redis, all.map(outboxKey).map(parkedKey)),
      epochOf(redis),
    ]);
    const heads = waiting.flatMap(({ head }) => (head === null ? [] : [Number.parseInt(head, 10)]));
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
    remove: (rows) => removeRows(redis, rows),
    park: (entries, reason) => parkEntries(redis, entries, reason),
    facts,
    epoch: () => epochOf(redis),
  };
}

const emptyBatch = (): OutboxBatch => ({
  ...{ ranges: [], rows: 0, chunks: [], unreadable: [] },
  ...{ erasures: [], corrections: [] },
});
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

async function headOf(redis: Redis | Cluster, partition: number): Promise<string | null> {
  const [first] = await redis.xrange(outboxKey(partition), '-', '+', 'COUNT', 1);
  return first?.[0] ?? null;
}

/** Shares maxRows among the partitions: short ones whole, what they leave goes to the longer ones. */
function fairShares(
  partitions: readonly number[],
  lengths: readonly number[],
  maxRows: number,
): [number, number][] {
  let left = maxRows;
  return partitions
    .map((partition, i): [number, number] => [partition, lengths[i] ?? 0])
    .filter(([, length]) => length > 0)
    .sort(([, a], [, b]) => a - b)
    .map(([partition, length], i, { length: count }) => {
      const share = Math.min(length, Math.ceil(left / (count - i)));
      left -= share;
      return [partition, share];
    });
}

/** @param end the smallest id that stays; without it, the erasures alone go */
async function trimPartition(
  redis: Redis | Cluster,
  partition: number,
  end: string | undefined,
  erasures: readonly PendingCorrection[],
): Promise<void> {
  if (erasures.length === 0 && end !== undefined) await redis.xtrim(outboxKey(partition), 'MINID', '=', end);
  else {
    const passed = erasures.flatMap(({ id, text }) => [id, text]);
    await redis.passErasures(partitionPrefix(partition), end ?? '', ...passed);
  }
}

/**
 * Appends the range's entries to the batch, page by page; `rows` is a bound, `-` and `+` are the stream's ends. They
 * are safe on the replicas where that is asked for: ClickHouse must not know of answers that a failover takes back.
 */
const readRange = (
  redis: Redis | Cluster,
  batch: OutboxBatch,
  range: OutboxRange,
  maxBytes?: number,
  skip?: ReadonlySet<string>,
): Promise<void> =>
  readReplicated(redis, partitionPrefix(range.partition), () =>
    readPages(redis, batch, range, maxBytes, skip),
  );

async function readPages(
  redis: Redis | Cluster,
  batch: OutboxBatch,
  { partition, from, to, rows }: OutboxRange,
  maxBytes = Number.POSITIVE_INFINITY,
  skip?: ReadonlySet<string>,
): Promise<void> {
  let bytes = sum(batch.chunks.map((chunk) => chunk.length));
  let start = from;
  for (let left = rows; left > 0 && bytes < maxBytes; ) {
    const count = Math.min(pageRows, left);
    const entries = await redis.xrangeBuffer(outboxKey(partition), start, to, 'COUNT', count);
    const last = entries.at(-1)?.[0].toString('latin1');
    if (last === undefined) return;
    const { passed, stop } = passable(entries);
    if (start === '-' && passed.length === 0 && stop) batch.corrections.push(correctionOf(partition, stop));
    const erasures = passed.filter(isCorrection);
    bytes += append(batch, partition, passed, erasures, skip);
    if (stop) return;
    // Redis is quicker than we are: its next page may be there at once and be read before all else that waits in the loop.
    await nextTurn();
    if (entries.length < count) return;
    left -= count - erasures.length;
    start = after(last);
  }
}

/** @param entries rows, and the erasures among them */
function append(
  batch: OutboxBatch,
  partition: number,
  entries: readonly StreamEntry[],
  erasures: readonly StreamEntry[],
  skip: ReadonlySet<string> | undefined,
): number {
  const rows = erasures.length === 0 ? entries : entries.filter((entry) => !isCorrection(entry));
  const page = encodePage(partition, rows, skip);
  if (page.unreadable.length > 0) batch.unreadable.push({ partition, ids: page.unreadable });
  batch.erasures.push(...erasures.map((entry) => correctionOf(partition, entry)));
  widen(batch, partition, page, entries);
  if (page.rows === 0) return 0;
  batch.rows += page.rows;
  batch.chunks.push(page.bytes);
  return page.bytes.length;
}

/**
 * A range begins with the first erasure before its rows, so that who reads it again finds all that trimming it removes.
 * Without rows there is none: its blocks' tokens are made of the ranges.
 */
function widen(
  { ranges, erasures }: OutboxBatch,
  partition: number,
  { rows, unreadable }: EncodedPage,
  entries: readonly StreamEntry[],
): void {
  const ids = entries.map(idText).filter((id) => !unreadable.includes(id));
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
  const [ms, seq] = id.split('-');
  return `${ms}-${Number(seq) + 1}`;
}

/** Redis gives each server process a new run_id; a failover shows as another server's. */
export async function epochOf(redis: Redis | Cluster): Promise<OutboxEpoch> {
  const servers = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const seen = await Promise.all(servers.map(identityOf));
  return {
    id: seen
      .map(({ id }) => id)
      .sort()
      .join(),
    ms: Math.max(...seen.map(({ ms }) => ms)),
  };
}

async function identityOf(server: Redis): Promise<OutboxEpoch> {
  const [info, time] = await Promise.all([server.info('server'), server.time()]);
  const id = /^run_id:(\w+)/m.exec(info)?.[1];
  if (id === undefined) throw new Error('Redis does not tell its run_id (INFO server)');
  return { id, ms: Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000) };
}
