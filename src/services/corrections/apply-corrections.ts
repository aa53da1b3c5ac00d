/** Applies corrections after the drain stored all earlier rows. Each step is idempotent. */
import type { CorrectedRows, RemovalCounts } from '../../contracts/corrections.js';
import { learnerName } from '../../contracts/learner-name.js';
import type { Logger } from '../../logger.js';
import {
  type CorrectionStore,
  type DueCorrection,
  isErasure,
  type PlannedCorrection,
} from '../../store/corrections/corrections.js';
import type { CorrectionWarehouse } from '../../warehouse/maintenance/correction-warehouse.js';

/** Redis may lose its last two seconds, but not a plan of this age. */
const settleMs = 2000;

export interface ApplyOptions {
  readonly store: CorrectionStore;
  readonly warehouse: Pick<CorrectionWarehouse, 'countRemovals' | 'remove'>;
  readonly logger: Logger;
}

/** Young plans and plans beyond one statement wait for a later run. */
export function createCorrections({ store, warehouse, logger }: ApplyOptions) {
  return async (partitions: readonly number[], signal?: AbortSignal): Promise<void> => {
    const found = await Promise.allSettled(partitions.map(store.listDue));
    const due = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    await planSome(oneStatement(due.filter((one) => !isPlanned(one))), signal);
    const ripe = due.filter(isPlanned).filter(({ plan }) => plan.ageMs >= settleMs);
    // Rewrites first, because they block the rows behind them.
    const [erasures, rewrites] = [ripe.filter(isErasure), ripe.filter((one) => !isErasure(one))];
    await applySome(oneStatement([...rewrites, ...erasures]), signal);
    // An unreadable correction blocks only its partition.
    for (const one of found) if (one.status === 'rejected') throw one.reason;
  };

  async function planSome(some: readonly DueCorrection[], signal: AbortSignal | undefined): Promise<void> {
    if (some.length === 0) return;
    const removals = await warehouse.countRemovals(some.map(rowsOf), signal);
    for (const [i, one] of some.entries()) await store.storePlan(one, removals[i] as RemovalCounts);
  }

  async function applySome(some: readonly PlannedCorrection[], signal: AbortSignal | undefined) {
    if (some.length === 0) return;
    const rows = some.map(rowsOf);
    await store.removeParkedRows(rows);
    await warehouse.remove(rows, signal);
    for (const one of some) await store.complete(one);
    const erasures = some.filter(isErasure).length;
    logger.info({ erasures, rewritten: some.length - erasures }, 'corrections were applied');
  }
}

const rowsOf = ({ rows }: DueCorrection): CorrectedRows => rows;
const isPlanned = (one: DueCorrection): one is PlannedCorrection => one.plan !== null;

/** A statement is limited to 256 KB (max_query_size) and contains each escaped name forty times. */
const together = 100;
const togetherBytes = 2500;

/** @returns at most one correction per learner */
export function oneStatement<One extends { readonly rows: CorrectedRows }>(all: readonly One[]): One[] {
  const names = new Set<string>();
  let bytes = 0;
  return all.filter(({ rows: { tenant, userId } }) => {
    const name = learnerName(tenant, userId);
    if (names.has(name) || names.size === together) return false;
    bytes += Buffer.byteLength(name);
    if (names.size > 0 && bytes > togetherBytes) return false;
    names.add(name);
    return true;
  });
}
