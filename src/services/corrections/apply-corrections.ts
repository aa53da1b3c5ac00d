/** Applies corrections after the drain stored all earlier rows. Each step is idempotent. */
import type { CorrectedRows, RemovalCounts } from '../../contracts/corrections/corrections.js';
import { learnerName } from '../../contracts/learners/learner-name.js';
import type { Logger } from '../../logger.js';
import {
  type CorrectionStore,
  type DueCorrection,
  isErasure,
  type PlannedCorrection,
} from '../../store/corrections/corrections.js';
import type { CorrectionWarehouse } from '../../warehouse/maintenance/correction-warehouse.js';

/** Redis may lose its last two seconds, but not a plan of this age. */
const minPlanAgeMs = 2000;

export interface CorrectionDependencies {
  readonly store: CorrectionStore;
  readonly warehouse: Pick<CorrectionWarehouse, 'countRemovals' | 'remove'>;
  readonly logger: Logger;
}

/**
 * Young plans and plans beyond one statement wait for a later run.
 * @returns a function that returns whether rewritten rows now wait at the head of an outbox
 */
export function createCorrectionApplier({ store, warehouse, logger }: CorrectionDependencies) {
  return async (partitions: readonly number[], signal?: AbortSignal): Promise<boolean> => {
    const results = await Promise.allSettled(partitions.map(store.listDue));
    const due = results.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    await planCorrections(selectForStatement(due.filter((one) => !isPlanned(one))), signal);
    const applicable = due.filter(isPlanned).filter(({ plan }) => plan.ageMs >= minPlanAgeMs);
    // Rewrites first, because they block the rows behind them.
    const [erasures, rewrites] = [applicable.filter(isErasure), applicable.filter((one) => !isErasure(one))];
    const applied = selectForStatement([...rewrites, ...erasures]);
    await applyPlanned(applied, signal);
    // An unreadable correction blocks only its partition.
    for (const one of results) if (one.status === 'rejected') throw one.reason;
    return !applied.every(isErasure);
  };

  async function planCorrections(
    some: readonly DueCorrection[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (some.length === 0) return;
    const removals = await warehouse.countRemovals(some.map(getRows), signal);
    for (const [i, one] of some.entries()) await store.storePlan(one, removals[i] as RemovalCounts);
  }

  async function applyPlanned(some: readonly PlannedCorrection[], signal: AbortSignal | undefined) {
    if (some.length === 0) return;
    const rows = some.map(getRows);
    await store.removeParkedRows(rows);
    await warehouse.remove(rows, signal);
    for (const one of some) await store.complete(one);
    const erasures = some.filter(isErasure).length;
    // A change of a time zone rewrites thousands of learners.
    const level = rows.every(({ keepsAnswers }) => keepsAnswers) ? 'debug' : 'info';
    logger[level]({ erasures, rewritten: some.length - erasures }, 'erasures and rewrites applied');
  }
}

const getRows = ({ rows }: DueCorrection): CorrectedRows => rows;
const isPlanned = (one: DueCorrection): one is PlannedCorrection => one.plan !== null;

/** A statement is limited to 256 KB (max_query_size) and contains each escaped name forty times. */
const maxStatementLearners = 100;
const maxStatementBytes = 2500;

/** @returns at most one correction per learner */
export function selectForStatement<One extends { readonly rows: CorrectedRows }>(all: readonly One[]): One[] {
  const names = new Set<string>();
  let bytes = 0;
  return all.filter(({ rows: { tenant, userId } }) => {
    const name = learnerName(tenant, userId);
    if (names.has(name) || names.size === maxStatementLearners) return false;
    bytes += Buffer.byteLength(name);
    if (names.size > 0 && bytes > maxStatementBytes) return false;
    names.add(name);
    return true;
  });
}
