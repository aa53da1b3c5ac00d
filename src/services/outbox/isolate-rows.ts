/**
 * Isolates and parks rows that ClickHouse rejects (ADR 22): drains each partition in ever smaller blocks
 * until a single entry is rejected. Then inserts its rows one by one.
 */
import { toEntryId } from '../../contracts/outbox/outbox-ids.js';
import type { Logger } from '../../logger.js';
import type { OutboxBlock } from '../../store/outbox/outbox.js';
import type { RejectedRow } from '../../store/outbox/parked-rows.js';
import { RowContentError } from '../../warehouse/clickhouse/insert-rows.js';
import {
  completeBlock,
  computeRowsToken,
  type DrainBlock,
  type DrainDependencies,
  type DrainResult,
  type DrainTask,
} from './complete-block.js';

export class BlockRejectedError extends Error {
  constructor(
    readonly block: OutboxBlock,
    reason: string,
    readonly isPartlyStored: boolean,
  ) {
    super(`ClickHouse rejects the content of a row: ${reason}`);
  }
}

/** The limit of parked rows is reached. Rejected rows stay in the outbox. */
export class ParkingFullError extends Error {
  constructor(partitions: readonly number[]) {
    super(
      `the limit of parked rows of partition ${partitions.join()} is reached; rejected rows wait in the outbox`,
    );
  }
}

/** @throws ParkingFullError after draining the other partitions */
export async function drainRejectedBlock(
  task: DrainTask,
  { block, isPartlyStored }: BlockRejectedError,
  drain: DrainBlock,
): Promise<DrainResult> {
  const done = { rows: 0, present: 0 };
  const fullPartitions: number[] = [];
  for (const { partition, rows } of block.ranges) {
    const partitionTask = { ...task, partitions: [partition], batch: null, verify: isPartlyStored };
    try {
      for await (const stored of drainPartition(partitionTask, rows, drain)) {
        done.rows += stored.rows;
        done.present += stored.present;
      }
    } catch (error) {
      if (!(error instanceof ParkingFullError)) throw error;
      fullPartitions.push(partition);
    }
  }
  if (fullPartitions.length > 0) throw new ParkingFullError(fullPartitions);
  return done;
}

/** Halves the block size after a rejection, and doubles it after a success. */
async function* drainPartition(
  task: DrainTask,
  rows: number,
  drain: DrainBlock,
): AsyncGenerator<DrainResult> {
  let [remainingRows, maxRows, verify] = [rows, rows, task.verify === true];
  while (remainingRows > 0) {
    task.signal?.throwIfAborted();
    const outcome = await drain({ ...task, maxRows, verify }).catch(returnIfRejected);
    if (!(outcome instanceof BlockRejectedError)) {
      if (outcome.rows === 0) return;
      yield outcome;
      remainingRows -= outcome.rows;
      maxRows = Math.min(2 * maxRows, remainingRows);
      continue;
    }
    const { block } = outcome;
    verify ||= outcome.isPartlyStored;
    maxRows = Math.max(1, block.rows >> 1);
    if (block.entries > 1) continue;
    // The next owner of the job must continue row by row.
    const batch = { ranges: block.ranges, rows: block.rows, fixedAt: 0, verify: true, byRow: true };
    await task.save(batch);
    yield await drain({ ...task, batch });
    remainingRows -= block.rows;
  }
}

function returnIfRejected(error: unknown): BlockRejectedError {
  if (error instanceof BlockRejectedError) return error;
  throw error;
}

const noRowReason = 'NO_ROW';

export function createIsolation(dependencies: DrainDependencies) {
  const { outbox, warehouse, logger } = dependencies;
  const logParked = createParkedLog(logger, () => performance.now());

  /** @throws ParkingFullError */
  async function parkUnreadable({ unreadable }: OutboxBlock): Promise<void> {
    for (const { partition, id } of unreadable) {
      if (!(await outbox.park(partition, id, noRowReason))) throw new ParkingFullError([partition]);
      logParked({ partition, id, reason: noRowReason }, 1);
    }
  }

  /**
   * Each row has a token, so inserts of two owners of the job count once. The entry leaves the outbox when all
   * rows are stored or parked.
   * @throws ParkingFullError
   */
  async function storeByRow(entry: OutboxBlock, signal: DrainTask['signal']): Promise<DrainResult> {
    const { ranges } = entry;
    const rows = splitRows(entry);
    const before = await warehouse.findStoredRows(ranges, signal);
    const reasons = new Map<string, string>();
    for (const { name, line } of rows) {
      signal?.throwIfAborted();
      const reason = before.has(name) ? null : await tryInsertRow(line, signal);
      if (reason !== null) reasons.set(name, reason);
    }
    // A rollup may reject rows that the table has stored.
    for (const name of await warehouse.findStoredRows(ranges, signal)) reasons.delete(name);
    await completeBlock(dependencies, entry, before.size, new Set(reasons.keys()), signal);
    const rejected = rows.flatMap(({ name, ms, seq, row }): RejectedRow[] => {
      const reason = reasons.get(name);
      return reason === undefined ? [] : [{ id: `${ms}-${seq}`, row, reason }];
    });
    const [first] = rows as [(typeof rows)[number]];
    const stored = { partition: first.partition, id: toEntryId(first), rows: rows.map(({ row }) => row) };
    if (!(await outbox.parkRows(stored, rejected))) throw new ParkingFullError([first.partition]);
    for (const { id, reason } of rejected.slice(0, 1))
      logParked({ partition: first.partition, id, reason }, rejected.length);
    return { rows: rows.length - rejected.length, present: 0 };
  }

  async function tryInsertRow(line: Buffer, signal: DrainTask['signal']): Promise<string | null> {
    try {
      await warehouse.insert([line], computeRowsToken([line], 0), signal);
      return null;
    } catch (error) {
      if (error instanceof RowContentError) return error.reason;
      throw error;
    }
  }

  return { parkUnreadable, storeByRow };
}

/** `name`: `partition\tms\tseq`; `row`: the other columns. Rows may contain any bytes. */
const splitRows = ({ chunks }: OutboxBlock) =>
  Buffer.concat(chunks)
    .toString('latin1')
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [partition, ms, seq] = line.split('\t', 3).map(Number) as [number, number, number];
      const name = `${partition}\t${ms}\t${seq}`;
      const row = Buffer.from(line.slice(name.length + 1), 'latin1');
      return { name, partition, ms, seq, line: Buffer.from(`${line}\n`, 'latin1'), row };
    });

/** Logs one line per second: one cause may park thousands of rows. */
const logEveryMs = 1000;

/** Never contains the content of the row. */
type ParkedLogFields = Readonly<Record<string, string | number>>;

/** @param now monotonic, in milliseconds */
export function createParkedLog(logger: Logger, now: () => number) {
  let nextAt = 0;
  let unlogged = 0;
  return (row: ParkedLogFields, rows: number): void => {
    if (now() < nextAt) {
      unlogged += rows;
      return;
    }
    logger.error(
      { ...row, rows, alike: unlogged },
      'a row was parked: ClickHouse rejects its content, or this version cannot read it',
    );
    nextAt = now() + logEveryMs;
    unlogged = 0;
  };
}
