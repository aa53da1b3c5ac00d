/** Making sure of a block that may be in ClickHouse in part. */
import { createHash } from 'node:crypto';
import type { Logger } from '../../telemetry.js';
import type { AttemptWarehouse, DrainTask, Outbox, OutboxBatch } from './pipeline-ports.js';

/** Where a block comes from and goes to. */
export interface DrainPlaces {
  readonly outbox: Outbox;
  readonly warehouse: AttemptWarehouse;
  readonly logger: Logger;
}

/** The table and its rollups may each hold a token without its part. */
const maxRounds = 5;

/**
 * Makes sure of a block that was tried before. ClickHouse notes a token before it moves the part into place: one
 * that was killed in between takes every repeat for a double and stores nothing. So what misses goes in under
 * new tokens, and the rollups are compared with the table and computed again where they differ.
 *
 * @param present how many rows were there before
 * @param refused rows that are not to be stored, each as `partition\tms\tseq`
 */
export async function completeBlock(
  { outbox, warehouse, logger }: DrainPlaces,
  read: OutboxBatch,
  present: number,
  refused: ReadonlySet<string>,
  signal: DrainTask['signal'],
): Promise<void> {
  const wanted = read.rows - refused.size;
  for (let round = 1; (await warehouse.countPresent(read.ranges, signal)) < wanted; round++) {
    if (round > maxRounds)
      throw new Error('ClickHouse keeps taking a block for a double that it does not have');
    const there = await warehouse.presentRows(read.ranges, signal);
    const missing = await outbox.read(read.ranges, new Set([...there, ...refused]));
    await warehouse.insert(missing.chunks, tokenOfRows(missing.chunks, round), signal);
  }
  const repaired = await warehouse.repairRollups(read.ranges, signal);
  if (present > 0 || repaired.length > 0) {
    logger.warn({ rows: read.rows, present, repaired }, 'a block was stored in part by an earlier attempt');
  }
}

export const tokenOfRanges = (read: OutboxBatch): string =>
  hash(read.ranges.map((range) => `${range.partition}:${range.from}:${range.to}:${range.rows}`));

/** @param round 0 for the first try */
export const tokenOfRows = (chunks: readonly Buffer[], round: number): string =>
  hash([`round ${round}`, ...chunks]);

function hash(parts: readonly (string | Buffer)[]): string {
  const sha = createHash('sha256');
  for (const part of parts) sha.update(part).update('\n');
  return sha.digest('hex').slice(0, 40);
}
