/**
 * Finds the rows of a block that ClickHouse refuses, and puts them aside, so that they hold up no others.
 *
 * The refused block is drained again partition by partition, in smaller blocks, from its beginning: half as many rows
 * after a refusal, twice as many after a success. Each smaller block is fixed in the job's data before it is inserted, as
 * any other: so whoever dies on the way, or sleeps while the job is given away, leaves what he would leave of any block,
 * and everything that makes a block count once holds here too. Of an entry that is refused alone the rows are stored one
 * by one, and those that are refused are parked.
 *
 * A block that was refused left nothing in the table, so that it may be cut anew. Where some of it is stored all the same,
 * by an earlier attempt before the cause came up, ClickHouse is asked before each smaller block.
 */
import { entryIdOf, type OutboxId } from '../../contracts/outbox-ids.js';
import type { OutboxBatch } from '../../store/outbox/outbox.js';
import type { RefusedRow } from '../../store/outbox/parked.js';
import { ContentRefused } from '../../warehouse/clickhouse/content-errors.js';
import {
  completeBlock,
  type DrainPlaces,
  type DrainResult,
  type DrainShard,
  type DrainTask,
  tokenOfRows,
} from './complete-block.js';
import { createParkedLog } from './parked-log.js';

/** A block that is to be drained in smaller ones. */
class BlockRefused extends Error {
  constructor(
    readonly left: OutboxBatch,
    readonly reason: string,
    /** Whether some of it is in ClickHouse. */
    readonly verify: boolean,
  ) {
    super(`ClickHouse refuses the content of a row: ${reason}`);
  }
}

/** What draining a block needs for rows that nobody can store. */
export interface Sieve {
  /** Puts entries aside that hold no row. @throws Error where there is no room for them */
  clear(read: OutboxBatch): Promise<void>;
  /**
   * Looks what became of a refused block. @returns how many rows are stored, where all are and it is a rollup that
   * refuses them. @throws BlockRefused for what is to be cut
   */
  judge(read: OutboxBatch, refused: ContentRefused, signal: DrainTask['signal']): Promise<number>;
  /** Goes on with an entry whose rows are stored one by one. @throws ParkedFull */
  byRow(task: DrainTask, read: OutboxBatch): Promise<DrainResult>;
  /** Drains as the given function does, and cuts what it calls refused. */
  over(drain: DrainShard): DrainShard;
}

export function createSieve(places: DrainPlaces): Sieve {
  const { outbox, warehouse, logger } = places;
  const log = createParkedLog(logger, () => performance.now());

  async function clear({ unreadable }: OutboxBatch): Promise<void> {
    for (const { partition, id } of unreadable) {
      if (!(await outbox.park(partition, id, noRow))) throw new ParkedFull([partition]);
      log.parked({ partition, id, reason: noRow }, 1);
    }
  }

  async function judge(
    read: OutboxBatch,
    { reason }: ContentRefused,
    signal: DrainTask['signal'],
  ): Promise<number> {
    const present = await warehouse.countPresent(read.ranges, signal);
    if (present === read.rows) return present;
    throw new BlockRefused(read, reason, present > 0);
  }

  /** One partition after the other: most have nothing that is refused. */
  async function sift(drain: DrainShard, task: DrainTask, refused: BlockRefused): Promise<DrainResult> {
    const { left, verify } = refused;
    const done = { rows: 0, present: 0 };
    const full: number[] = [];
    await pass(
      left.erasures.filter((one) => !left.ranges.some(({ partition }) => partition === one.partition)),
    );
    for (const { partition, rows } of left.ranges) {
      const outcome = await siftPartition(
        drain,
        { ...task, partitions: [partition], batch: null, verify },
        rows,
      );
      done.rows += outcome.rows;
      done.present += outcome.present;
      if (outcome.full) full.push(partition);
    }
    if (full.length > 0) throw new ParkedFull(full);
    return done;
  }

  /** @param rows how many are to be gone through; what comes behind them may be taken in */
  async function siftPartition(
    drain: DrainShard,
    task: DrainTask,
    rows: number,
  ): Promise<DrainResult & { full: boolean }> {
    const done = { rows: 0, present: 0, full: false };
    let maxRows = rows;
    let { verify } = task;
    for (let left = rows; left > 0; ) {
      task.signal?.throwIfAborted();
      const outcome = await drainOrRefusal(drain, { ...task, maxRows, verify: verify === true });
      if (!(outcome instanceof BlockRefused)) {
        if (outcome.rows === 0) return done;
        done.rows += outcome.rows;
        done.present += outcome.present;
        left -= outcome.rows;
        maxRows = Math.min(maxRows * 2, rows);
      } else if (outcome.left.entries > 1) {
        maxRows = outcome.left.rows >> 1;
        verify ||= outcome.verify;
      } else {
        const { ranges, rows: held } = outcome.left;
        // Whoever takes the job over goes row by row too.
        await task.save({ ranges, rows: held, fixedAt: 0, verify: true, byRow: true });
        const stored = await siftEntry(outcome.left, task.signal);
        if (stored === null) {
          await pass(outcome.left.erasures);
          return { ...done, full: true };
        }
        done.rows += stored;
        left -= held;
      }
    }
    return done;
  }

  /**
   * Row by row, each under a token of its own, so that who stood still meanwhile repeats what whoever took the job over has
   * done. The entry leaves the outbox when all is stored that is not refused.
   * @returns how many rows are stored; null where there is no room for those that are refused
   */
  async function siftEntry(read: OutboxBatch, signal: DrainTask['signal']): Promise<number | null> {
    const rows = rowsOf(read);
    const before = await warehouse.presentRows(read.ranges, signal);
    const reasons = new Map<string, string>();
    for (const { name, line } of rows) {
      signal?.throwIfAborted();
      const reason = before.has(name) ? null : await refusalOf(line, signal);
      if (reason !== null) reasons.set(name, reason);
    }
    // A rollup may refuse what the table has taken.
    for (const name of await warehouse.presentRows(read.ranges, signal)) reasons.delete(name);
    await completeBlock(places, read, before.size, new Set(reasons.keys()), signal);
    return (await parkRows(rows, reasons)) ? rows.length - reasons.size : null;
  }

  /** @returns why the row is refused; null where it is stored */
  async function refusalOf(line: Buffer, signal: DrainTask['signal']): Promise<string | null> {
    try {
      await warehouse.insert([line], tokenOfRows([line], 0), signal);
      return null;
    } catch (error) {
      if (error instanceof ContentRefused) return error.reason;
      throw error;
    }
  }

  /** @returns whether there was room for all */
  async function parkRows(rows: readonly ReadRow[], reasons: ReadonlyMap<string, string>): Promise<boolean> {
    const [first] = rows as readonly [ReadRow];
    const { partition } = first;
    const refused = rows.flatMap(({ name, id, row }): RefusedRow[] => {
      const reason = reasons.get(name);
      return reason === undefined ? [] : [{ id: `${id.ms}-${id.seq}`, row, reason }];
    });
    const entry = { partition, id: entryIdOf(first.id), rows: rows.map(({ row }) => row) };
    if (!(await outbox.parkRows(entry, refused))) return false;
    const [told] = refused;
    if (told !== undefined) log.parked({ partition, id: told.id, reason: told.reason }, refused.length);
    return true;
  }

  /** They come before every row: no row that finds no room may hold them up. */
  const pass = (erasures: OutboxBatch['erasures']): Promise<void> => outbox.trim({ ranges: [], erasures });

  async function byRow(task: DrainTask, read: OutboxBatch): Promise<DrainResult> {
    const stored = await siftEntry(read, task.signal);
    if (stored === null) throw new ParkedFull(read.ranges.map(({ partition }) => partition));
    return { rows: stored, present: 0 };
  }

  return {
    clear,
    judge,
    byRow,
    over: (drain) => async (task) => {
      const outcome = await drainOrRefusal(drain, task);
      return outcome instanceof BlockRefused ? sift(drain, task, outcome) : outcome;
    },
  };
}

/** Reason of an entry that holds no row. */
const noRow = 'NO_ROW';

const drainOrRefusal = (drain: DrainShard, task: DrainTask): Promise<DrainResult | BlockRefused> =>
  drain(task).catch((error: unknown) => {
    if (error instanceof BlockRefused) return error;
    throw error;
  });

/** A row as it was read from the outbox. */
interface ReadRow {
  /** As `partition\tms\tseq`. */
  readonly name: string;
  readonly partition: number;
  readonly id: OutboxId;
  /** With the outbox columns and the line feed, and without. */
  readonly line: Buffer;
  readonly row: Buffer;
}

const lineFeed = 0x0a;
const outboxColumns = /^(\d+)\t(\d+)\t(\d+)\t/;

function rowsOf({ chunks }: OutboxBatch): ReadRow[] {
  const bytes = Buffer.concat(chunks);
  const rows: ReadRow[] = [];
  for (let from = 0; from < bytes.length; ) {
    const line = bytes.subarray(from, bytes.indexOf(lineFeed, from) + 1);
    from += line.length;
    const [columns = '', partition, ms, seq] = outboxColumns.exec(line.toString('latin1')) ?? [];
    const id = { ms: Number(ms), seq: Number(seq) };
    const row = line.subarray(columns.length, -1);
    rows.push({ name: columns.slice(0, -1), partition: Number(partition), id, line, row });
  }
  return rows;
}

/** Rows wait in their outbox for want of room; erasures that are due do not. */
export class ParkedFull extends Error {
  constructor(partitions: readonly number[]) {
    super(
      `no more rows can be parked of partition ${partitions.join()}: what is refused waits in the outbox`,
    );
  }
}
