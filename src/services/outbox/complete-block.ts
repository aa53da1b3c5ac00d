import { createHash } from 'node:crypto';
import type { PinnedBlock } from '../../contracts/outbox/job-data.js';
import type { Logger } from '../../logger.js';
import type { Span } from '../../spans.js';
import type { Outbox, OutboxBlock } from '../../store/outbox/outbox.js';
import type { AttemptWarehouse } from '../../warehouse/ingest/attempt-warehouse.js';

export interface DrainDependencies {
  readonly outbox: Outbox;
  readonly warehouse: AttemptWarehouse;
  readonly logger: Logger;
}

export type DrainBlock = (task: DrainTask) => Promise<DrainResult>;

export interface DrainTask {
  partitions: readonly number[];
  /** Fixed by an earlier attempt of this job. */
  batch: PinnedBlock | null;
  /** Resolves when later attempts will find the batch. */
  save(batch: PinnedBlock): Promise<void>;
  /** Maximum rows of the block; smaller to isolate rejected rows. Default: the drain's limit. */
  maxRows?: number;
  /** Ask ClickHouse which rows are stored. */
  verify?: boolean;
  signal?: AbortSignal;
  span?: Span | null;
}

export interface DrainResult {
  rows: number;
  present: number;
}

/** The table and each rollup may have a token without its rows, and each may need a round. */
const maxTokenRounds = 5;

/**
 * Completes a block after an earlier attempt. If ClickHouse was killed, it may have a token without its rows
 * and drop every repeat as a duplicate. So missing rows get new tokens, and rollups are repaired.
 * @param present rows stored before
 * @param rejected rows not to store, as `partition\tms\tseq`
 */
export async function completeBlock(
  dependencies: DrainDependencies,
  block: OutboxBlock,
  present: number,
  rejected: ReadonlySet<string>,
  signal: DrainTask['signal'],
): Promise<void> {
  const { warehouse, logger } = dependencies;
  const expectedRows = block.rows - rejected.size;
  for (let round = 1; (await warehouse.countStored(block.ranges, signal)) < expectedRows; round++) {
    if (round > maxTokenRounds)
      throw new Error('ClickHouse rejects a block as a duplicate but lacks its rows');
    await insertMissing(dependencies, block, rejected, round, signal);
  }
  const repaired = await warehouse.repairRollups(block.ranges, signal);
  if (present > 0 || repaired.length > 0) {
    logger.warn(
      { rows: block.rows, present, repaired },
      'an earlier attempt stored part of a block; the block is completed',
    );
  }
}

export async function insertMissing(
  { outbox, warehouse }: DrainDependencies,
  block: OutboxBlock,
  rejected: ReadonlySet<string>,
  round: number,
  signal: DrainTask['signal'],
): Promise<number> {
  const presentRows = await warehouse.findStoredRows(block.ranges, signal);
  const missing = await outbox.readRanges(block.ranges, new Set([...presentRows, ...rejected]));
  if (missing.rows > 0)
    await warehouse.insert(missing.chunks, computeRowsToken(missing.chunks, round), signal);
  return presentRows.size;
}

export const computeRangeToken = (block: OutboxBlock): string =>
  hash(block.ranges.map((range) => `${range.partition}:${range.from}:${range.to}:${range.rows}`));

/** @param round gives the same rows another token; 0 at first */
export const computeRowsToken = (chunks: readonly Buffer[], round: number): string =>
  hash([`round ${round}`, ...chunks]);

function hash(parts: readonly (string | Buffer)[]): string {
  const sha = createHash('sha256');
  for (const part of parts) sha.update(part).update('\n');
  return sha.digest('hex').slice(0, 40);
}
