/**
 * Isolates the rows of a block that ClickHouse refuses, and parks them, so that they hold up no others.
 *
 * The refused block is drained again partition by partition, a refused part in two halves, until an entry is refused alone.
 * Of that the rows are stored one by one, and those that are refused are parked. Each part is fixed in the job's data
 * before it is inserted, as any other block: so a process that dies on the way, or sleeps while the job is given away,
 * leaves what it would leave of any block, and everything that makes a block count once holds here too.
 *
 * A refused block left nothing in the table, so it may be cut elsewhere. Where some of it is stored all the same, by an
 * earlier attempt before the cause came up, ClickHouse is asked before each part.
 */
import { entryIdOf, type OutboxId } from '../../contracts/outbox-ids.js';
import type { OutboxBatch } from '../../store/outbox/outbox.js';
import type { RefusedRow } from '../../store/outbox/parked.js';
import type { Logger } from '../../telemetry.js';
import { ContentRefused } from '../../warehouse/clickhouse/content-errors.js';
import {
  completeBlock,
  type DrainPlaces,
  type DrainResult,
  type DrainShard,
  type DrainTask,
  tokenOfRows,
} from './complete-block.js';

/** A block that is to be drained in smaller ones. */
class BlockRefused extends Error {
  constructor(
    readonly block: OutboxBatch,
    reason: string,
    /** Whether some of it is in ClickHouse. */
    readonly verify: boolean,
  ) {
    super(`ClickHouse refuses the content of a row: ${reason}`);
  }
}

/** Rows wait in their outbox for want of room. */
export class ParkedFull extends Error {
  constructor(partitions: readonly number[]) {
    super(
      `no more rows can be parked of partition ${partitions.join()}: what is refused waits in the outbox`,
    );
  }
}

/** Reason of an entry that holds no row. */
const noRow = 'NO_ROW';

export function createIsolation(places: DrainPlaces) {
  const { outbox, warehouse, logger } = places;
  const logParked = createParkedLog(logger, () => performance.now());

  /** Parks entries that hold no row. @throws ParkedFull */
  async function parkUnreadable({ unreadable }: OutboxBatch): Promise<void> {
    for (const { partition, id } of unreadable) {
      if (!(await outbox.park(partition, id, noRow))) throw new ParkedFull([partition]);
      logParked({ partition, id, reason: noRow }, 1);
    }
  }

  /**
   * Looks what became of a refused block.
   * @returns how many rows are stored, where all are and it is a rollup that refuses them
   * @throws BlockRefused for what is to be cut
   */
  async function judge(
    block: OutboxBatch,
    { reason }: ContentRefused,
    signal: DrainTask['signal'],
  ): Promise<number> {
    const present = await warehouse.countPresent(block.ranges, signal);
    if (present === block.rows) return present;
    throw new BlockRefused(block, reason, present > 0);
  }

  /**
   * Stores the rows of an entry one by one, each under a token of its own, so that a process that stood still meanwhile
   * repeats what the next holder of the job has done. The entry leaves the outbox when all is stored that is not refused.
   * @throws ParkedFull where there is no room for those that are refused
   */
  async function storeByRow(entry: OutboxBatch, signal: DrainTask['signal']): Promise<DrainResult> {
    const { ranges } = entry;
    const rows = rowsOf(entry);
    const before = await warehouse.presentRows(ranges, signal);
    const reasons = new Map<string, string>();
    for (const { name, line } of rows) {
      signal?.throwIfAborted();
      const reason = before.has(name) ? null : await refusalOf(line, signal);
      if (reason !== null) reasons.set(name, reason);
    }
    // A rollup may refuse what the table has taken.
    for (const name of await warehouse.presentRows(ranges, signal)) reasons.delete(name);
    await completeBlock(places, entry, before.size, new Set(reasons.keys()), signal);
    const refused = rows.flatMap(({ name, id, row }): RefusedRow[] => {
      const reason = reasons.get(name);
      return reason === undefined ? [] : [{ id: `${id.ms}-${id.seq}`, row, reason }];
    });
    const [{ partition }, { id }] = [ranges[0], rows[0]] as [{ partition: number }, ReadRow];
    const stored = { partition, id: entryIdOf(id), rows: rows.map(({ row }) => row) };
    if (!(await outbox.parkRows(stored, refused))) throw new ParkedFull([partition]);
    const [first] = refused;
    if (first !== undefined) logParked({ partition, id: first.id, reason: first.reason }, refused.length);
    return { rows: rows.length - refused.length, present: 0 };
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

  /** Drains as the given function does, and isolates what it calls refused. @throws ParkedFull */
  function over(drain: DrainShard): DrainShard {
    return async (task) => {
      try {
        return await drain(task);
      } catch (error) {
        if (error instanceof BlockRefused) return isolate(task, error);
        throw error;
      }
    };

    /** One partition after the other: most have nothing that is refused. */
    async function isolate(task: DrainTask, { block, verify }: BlockRefused): Promise<DrainResult> {
      const done = { rows: 0, present: 0, passed: 0 };
      const full: number[] = [];
      for (const { partition, rows } of block.ranges) {
        const own = { ...task, partitions: [partition], batch: null, verify };
        await drainParts(own, done, rows, rows).catch((error: unknown) => {
          if (!(error instanceof ParkedFull)) throw error;
          full.push(partition);
        });
      }
      if (full.length > 0) throw new ParkedFull(full);
      return { rows: done.rows, present: done.present };
    }

    /** Goes through so many rows, in parts of at most `maxRows`; what comes behind them may be taken in. */
    async function drainParts(task: DrainTask, done: Progress, rows: number, maxRows: number): Promise<void> {
      for (const end = done.passed + rows; done.passed < end; ) {
        task.signal?.throwIfAborted();
        const { passed } = done;
        await drainPart({ ...task, maxRows }, done);
        if (done.passed === passed) return;
      }
    }

    async function drainPart(task: DrainTask, done: Progress): Promise<void> {
      try {
        add(done, await drain(task));
      } catch (error) {
        if (!(error instanceof BlockRefused)) throw error;
        const { block, verify } = error;
        if (block.entries > 1) {
          const again = { ...task, verify: task.verify === true || verify };
          return drainParts(again, done, block.rows, block.rows >> 1);
        }
        // Whoever takes the job over goes row by row too.
        await task.save({ ranges: block.ranges, rows: block.rows, fixedAt: 0, verify: true, byRow: true });
        add(done, await storeByRow(block, task.signal), block.rows);
      }
    }
  }

  return { parkUnreadable, judge, storeByRow, over };
}

interface Progress extends DrainResult {
  /** Rows that are gone from the outbox. */
  passed: number;
}

function add(done: Progress, { rows, present }: DrainResult, passed = rows): void {
  done.rows += rows;
  done.present += present;
  done.passed += passed;
}

/** A row as it was read from the outbox. */
interface ReadRow {
  /** As `partition\tms\tseq`. */
  readonly name: string;
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
    const [columns = '', , ms, seq] = outboxColumns.exec(line.toString('latin1')) ?? [];
    const id = { ms: Number(ms), seq: Number(seq) };
    rows.push({ name: columns.slice(0, -1), id, line, row: line.subarray(columns.length, -1) });
  }
  return rows;
}

/** When a whole block is refused, thousands are parked for one reason: one line a second is logged, with their number. */
const logEveryMs = 1000;

/** What is logged of a parked row: where it was and is, and why; nothing of its content. */
interface ParkedRow {
  readonly partition?: number;
  /** Of the journal: keys of the streams, and kind of the fact. */
  readonly source?: string;
  readonly kind?: string;
  readonly parked?: string;
  readonly id: string;
  readonly reason: string;
}

/**
 * @param now monotonic clock in milliseconds
 * @returns logs the first of some rows that were parked together
 */
export function createParkedLog(logger: Logger, now: () => number) {
  let nextAt = 0;
  let unlogged = 0;
  return (row: ParkedRow, rows: number): void => {
    if (now() < nextAt) {
      unlogged += rows;
      return;
    }
    logger.error(
      { ...row, rows, alike: unlogged },
      'a row was parked: ClickHouse refuses its content, or this version cannot read it',
    );
    nextAt = now() + logEveryMs;
    unlogged = 0;
  };
}
