/**
 * Carries out a correction when it comes before every row of its partition: what was committed before it is in
 * ClickHouse then, and nothing of what came after. The drain that holds the partition does it, one correction at a time;
 * each step may be repeated, so that it may be killed after any.
 */
import { type Correction, decodeCorrection, type PendingCorrection } from '../contracts/corrections.js';
import type { Logger } from '../telemetry.js';
import type { CorrectedRows, CorrectionStore, CorrectionWarehouse, Removal } from './correction-ports.js';
import type { CarryOut } from './pipeline-ports.js';

/**
 * How long a correction and what it takes away are known before anything is deleted, in milliseconds: a Redis that loses
 * its last second (everysec, up to two while the disk is busy) must not forget an order that ClickHouse has obeyed.
 */
const settleMs = 2000;
/** Event ids are remembered for a day; clocks may differ by less than the rest. */
const idsMs = 25 * 3_600_000;

export interface CarryOutOptions {
  readonly store: CorrectionStore;
  readonly warehouse: CorrectionWarehouse;
  readonly logger: Logger;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Leaves a correction that is too young to a later run. Errors are those of Redis and ClickHouse: try again. */
export function createCarryOut({ store, warehouse, logger, now }: CarryOutOptions): CarryOut {
  return async (pending, signal) => {
    const correction = decodeCorrection(pending.text);
    const rows = rowsOf(pending, correction);
    const planned = (await store.plan(pending, null)) ?? (await plan(pending, correction, rows, signal));
    if (planned === null || planned.ageMs < settleMs) return;
    const erases = correction.kind === 'erase';
    const parked = await store.removeParked(rows, erases);
    if (erases) {
      const stored = await warehouse.eventIds(rows, now() - idsMs, signal);
      await store.forgetIds(rows, [...stored, ...parked]);
    }
    await warehouse.remove(rows, signal);
    await store.settle(pending, correction, planned.removal);
    logger.info(
      { partition: pending.partition, id: pending.id, kind: correction.kind },
      'a correction was carried out',
    );
  };

  async function plan(
    pending: PendingCorrection,
    correction: Correction,
    rows: CorrectedRows,
    signal: AbortSignal | undefined,
  ) {
    const removal = correction.kind === 'erase' ? await warehouse.count(rows, signal) : removalOf(correction);
    return store.plan(pending, removal);
  }
}

/** The rows that are computed anew come again: one answer alone is gone. */
const removalOf = ({ takenBackDay }: Extract<Correction, { kind: 'rewrite' }>): Removal => ({
  answers: takenBackDay === null ? {} : { [takenBackDay]: 1 },
  before: {},
});

function rowsOf({ partition, id }: PendingCorrection, correction: Correction): CorrectedRows {
  const [belowMs, belowSeq] = id.split('-').map(Number) as [number, number];
  const { tenant, userId } = correction;
  const fromSeq = correction.kind === 'erase' ? 0 : correction.fromSeq;
  const goalAt = correction.kind === 'erase' ? correction.goalAt : 0;
  return { tenant, userId, partition, belowMs, belowSeq, fromSeq, goalAt };
}
