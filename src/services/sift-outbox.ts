/**
 * Finds the rows of a block that ClickHouse refuses, and puts them aside, so that they hold up no others.
 *
 * The refused block is drained again partition by partition, in smaller blocks, from its beginning: half as many rows
 * after a refusal, twice as many after a success, and a row that is refused alone is parked. Each smaller block is fixed in the job's data
 * before it is inserted, as any other: so whoever dies on the way, or sleeps while the job is given away, leaves what
 * he would leave of any block, and everything that makes a block count once holds here too.
 *
 * A block that was refused left nothing in the table, so that it may be cut anew. What is stored of it all the same,
 * by an earlier attempt before the cause came up, leaves the outbox first.
 */
import type { Logger } from '../telemetry.js';
import { createParkedLog } from './parked-log.js';
import type {
  AttemptWarehouse,
  ContentRefused,
  DrainResult,
  DrainShard,
  DrainTask,
  Outbox,
  OutboxBatch,
  OutboxEntries,
} from './pipeline-ports.js';

/** A block that is to be drained in smaller ones. */
class BlockRefused extends Error {
  constructor(
    /** What is in the outbox of it still, none of which is in ClickHouse. */
    readonly left: OutboxBatch,
    readonly reason: string,
  ) {
    super(`ClickHouse refuses the content of a row: ${reason}`);
  }
}

export interface SiftOptions {
  readonly outbox: Outbox;
  readonly warehouse: AttemptWarehouse;
  readonly logger: Logger;
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
  /** Drains as the given function does, and cuts what it calls refused. */
  over(drain: DrainShard): DrainShard;
}

export function createSieve({ outbox, warehouse, logger }: SiftOptions): Sieve {
  const log = createParkedLog(logger, () => performance.now());

  /** @returns whether there was room for all */
  async function park(entries: OutboxEntries, reason: string): Promise<boolean> {
    const stayed = await outbox.park(entries, reason);
    const [id = ''] = entries.ids;
    const parked = entries.ids.length - stayed;
    if (parked > 0) log.parked({ partition: entries.partition, id, reason }, parked);
    return stayed === 0;
  }

  async function clear({ unreadable }: OutboxBatch): Promise<void> {
    for (const entries of unreadable) {
      if (!(await park(entries, noRow))) throw new ParkedFull([entries.partition]);
    }
  }

  async function judge(
    read: OutboxBatch,
    { reason }: ContentRefused,
    signal: DrainTask['signal'],
  ): Promise<number> {
    const present = await warehouse.countPresent(read.ranges, signal);
    if (present === read.rows) return present;
    if (present === 0) throw new BlockRefused(read, reason);
    const stored = await warehouse.presentRows(read.ranges, signal);
    await warehouse.repairRollups(read.ranges, signal);
    await outbox.remove(stored);
    throw new BlockRefused(await outbox.read(read.ranges), reason);
  }

  /** One partition after the other: most have nothing that is refused. */
  async function sift(drain: DrainShard, task: DrainTask, { left }: BlockRefused): Promise<DrainResult> {
    const done = { rows: 0, present: 0 };
    const full: number[] = [];
    await pass(
      left.erasures.filter((one) => !left.ranges.some(({ partition }) => partition === one.partition)),
    );
    for (const { partition, rows } of left.ranges) {
      const outcome = await siftPartition(drain, { ...task, partitions: [partition], batch: null }, rows);
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
    for (let left = rows; left > 0; ) {
      task.signal?.throwIfAborted();
      const outcome = await drainOrRefusal(drain, { ...task, maxRows });
      if (!(outcome instanceof BlockRefused)) {
        if (outcome.rows === 0) return done;
        done.rows += outcome.rows;
        done.present += outcome.present;
        left -= outcome.rows;
        maxRows = Math.min(maxRows * 2, rows);
      } else if (outcome.left.rows > 1) {
        maxRows = outcome.left.rows >> 1;
      } else {
        if (!(await park(soleEntry(outcome.left), outcome.reason))) {
          await pass(outcome.left.erasures);
          return { ...done, full: true };
        }
        left -= 1;
      }
    }
    return done;
  }

  /** They come before every row: no row that finds no room may hold them up. */
  const pass = (erasures: OutboxBatch['erasures']): Promise<void> => outbox.trim({ ranges: [], erasures });

  return {
    clear,
    judge,
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

/** By the beginning of its line: erasures may come before it. */
function soleEntry({ chunks: [line] }: OutboxBatch): OutboxEntries {
  const [, partition, ms, seq] = /^(\d+)\t(\d+)\t(\d+)\t/.exec(line?.toString('latin1') ?? '') ?? [];
  return { partition: Number(partition), ids: ms === undefined ? [] : [`${ms}-${seq}`] };
}

/** Rows wait in their outbox for want of room; erasures that are due do not. */
export class ParkedFull extends Error {
  constructor(partitions: readonly number[]) {
    super(
      `no more rows can be parked of partition ${partitions.join()}: what is refused waits in the outbox`,
    );
  }
}
