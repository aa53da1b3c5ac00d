/**
 * Moves a block of attempts from the outbox to ClickHouse exactly once (docs/understand/exactly-once.md): fixes it in
 * the job data, inserts it, and trims the outbox. ClickHouse counts a retry with the same rows and token
 * once. If the token may not suffice, the drain first looks for stored rows: for rows older than this
 * process's view of Redis or than 10 s, blocks fixed over a minute ago, and ranges with another row count
 * than when fixed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { PinnedBlock } from '../../contracts/outbox/job-data.js';
import { parseOutboxId } from '../../contracts/outbox/outbox-ids.js';
import { endSpanAfter } from '../../spans.js';
import type { BlockLimits, OutboxBlock, OutboxEpoch } from '../../store/outbox/outbox.js';
import { RowContentError } from '../../warehouse/clickhouse/insert-rows.js';
import {
  completeBlock,
  computeRangeToken,
  type DrainBlock,
  type DrainDependencies,
  type DrainResult,
  type DrainTask,
  insertMissing,
} from './complete-block.js';
import { BlockRejectedError, createIsolation, drainRejectedBlock, ParkingFullError } from './isolate-rows.js';

/** ClickHouse remembers 10,000 blocks: two shards exceed that in a minute at 83 blocks/s each. */
const tokenTrustMs = 60_000;

/**
 * Wait after Redis was replaced: another process may still insert a block of which Redis lost the job. An immediate
 * lookup would miss its rows.
 */
const epochSettleWaitMs = 3000;

/**
 * Younger rows can only be in a block of the current job. Above the takeover of a dead worker's job (8 s,
 * jobs/drain-jobs.ts), below the restart of a stalled consumer (20 s, jobs/consumer.ts).
 */
const skipLookupBelowMs = 10_000;

/** ClickHouse prefers blocks of 100,000 rows. Bytes limit memory for long ids. */
const defaultLimits: BlockLimits = { maxRows: 100_000, maxBytes: 32 * 2 ** 20 };

export interface DrainOptions extends DrainDependencies {
  limits?: BlockLimits;
  /** @returns whether rewritten rows now wait at the head of an outbox */
  applyCorrections?: (partitions: readonly number[], signal?: AbortSignal) => Promise<boolean>;
}

/** Throws errors of Redis and ClickHouse. The caller retries the same task. */
export function createDrain(options: DrainOptions): DrainBlock {
  const { outbox, limits = defaultLimits, applyCorrections = async () => false } = options;
  const { parkUnreadable, storeByRow } = createIsolation(options);
  const moveBlock = createBlockMover(options);

  async function drain(task: DrainTask): Promise<DrainResult> {
    const { batch, partitions, maxRows = limits.maxRows, signal } = task;
    const block = await (batch
      ? outbox.readRanges(batch.ranges)
      : outbox.peek(partitions, { ...limits, maxRows }));
    await parkUnreadable(block);
    if (batch?.byRow === true && block.rows > 0) return storeByRow(block, signal);
    const moved = block.rows === 0 ? { rows: 0, present: 0 } : await moveBlock(task, block);
    // After the rows, so that a failing correction does not block them.
    const hasRewrites = await applyCorrections(partitions, signal);
    // Immediately, because ClickHouse now lacks these rows.
    if (!hasRewrites) return moved;
    const { rows, present } = await drain({ ...task, batch: null });
    return { rows: moved.rows + rows, present: moved.present + present };
  }

  async function drainOrIsolate(task: DrainTask): Promise<DrainResult> {
    try {
      return await drain(task);
    } catch (error) {
      if (error instanceof BlockRejectedError) return drainRejectedBlock(task, error, drain);
      throw error;
    }
  }

  return (task) =>
    drainOrIsolate(task).catch(async (error: unknown) => {
      if (error instanceof ParkingFullError) {
        // Pins an empty block. Otherwise the next attempt would only read the rows that cannot be parked.
        await task.save({ ranges: [], rows: 0, fixedAt: 0, verify: false });
        await applyCorrections(task.partitions, task.signal);
      }
      throw error;
    });
}

const noRejectedRows: ReadonlySet<string> = new Set();

function createBlockMover(dependencies: DrainDependencies) {
  const { outbox, warehouse } = dependencies;
  const watchEpoch = createEpochWatch();

  async function pinBlock(
    task: DrainTask,
    { ranges, rows }: OutboxBlock,
    epoch: OutboxEpoch,
  ): Promise<PinnedBlock> {
    const { signal } = task;
    const { since, settledAt } = watchEpoch(epoch);
    if (settledAt > epoch.ms) await sleep(settledAt - epoch.ms, undefined, { signal });
    const oldest = Math.min(...ranges.map(({ from }) => parseOutboxId(from).ms));
    const verify =
      task.verify ||
      oldest <= since ||
      // Old rows may belong to a lost or restarted job.
      (epoch.ms - oldest > skipLookupBelowMs && (await warehouse.countStored(ranges, signal)) > 0);
    const batch = { ranges, rows, fixedAt: epoch.ms, verify };
    await task.save(batch);
    return batch;
  }

  /** After a failover, ids in these ranges may belong to rows that this task never read. */
  async function checkEpoch({ id }: OutboxEpoch): Promise<void> {
    if ((await outbox.readEpoch()).id !== id)
      throw new Error('Redis was replaced during the drain; the block is retried');
  }

  /** @returns number of rows that were stored already @throws RowContentError */
  async function insert(block: OutboxBlock, verify: boolean, signal: DrainTask['signal']): Promise<number> {
    if (verify && (await warehouse.countStored(block.ranges, signal)) > 0)
      return insertMissing(dependencies, block, noRejectedRows, 0, signal);
    await warehouse.insert(block.chunks, computeRangeToken(block), signal);
    return 0;
  }

  return async (task: DrainTask, block: OutboxBlock): Promise<DrainResult> => {
    const { signal } = task;
    const epoch = await outbox.readEpoch();
    const batch = task.batch ?? (await pinBlock(task, block, epoch));
    const isOld = Math.abs(epoch.ms - batch.fixedAt) > tokenTrustMs;
    const verify = batch.verify || block.rows !== batch.rows || isOld;
    const span = task.span?.child('insert', {
      'db.system.name': 'clickhouse',
      'skilltrace.rows': block.rows,
    });
    const present = await endSpanAfter(span, insert(block, verify, signal)).catch(async (error: unknown) => {
      if (!(error instanceof RowContentError)) throw error;
      await checkEpoch(epoch);
      const stored = await warehouse.countStored(block.ranges, signal);
      if (stored < block.rows) throw new BlockRejectedError(block, error.reason, stored > 0);
      // A rollup rejected rows that the table has stored.
      return stored;
    });
    if (verify || present > 0 || task.batch !== null)
      await completeBlock(dependencies, block, present, noRejectedRows, signal);
    await checkEpoch(epoch);
    await outbox.trim(block.ranges);
    return { rows: block.rows, present };
  };
}

/**
 * `since`: when this process first saw the epoch, on Redis' clock. Rows with later ids cannot come from before
 * a restart. Read the epoch after the rows, to notice a restart in between.
 */
function createEpochWatch(): (epoch: OutboxEpoch) => { since: number; settledAt: number } {
  let currentEpoch: OutboxEpoch | null = null;
  let settledAt = 0;
  return (epoch) => {
    if (currentEpoch !== null && currentEpoch.id !== epoch.id) settledAt = epoch.ms + epochSettleWaitMs;
    if (currentEpoch?.id !== epoch.id) currentEpoch = epoch;
    return { since: currentEpoch.ms, settledAt };
  };
}
