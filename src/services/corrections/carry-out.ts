/**
 * Carries out corrections, for the drain that holds their partitions. Erasures that are due, many at once: answers flow on
 * meanwhile. Others when they come before everything in their outbox: what was committed before is in ClickHouse then,
 * and nothing of what came after. Each step may be repeated, so that it may be killed after any.
 */
import {
  type Correction,
  decodeCorrection,
  type EraseCorrection,
  type PendingCorrection,
  type RewriteCorrection,
} from '../../contracts/corrections.js';
import { firstRowOf } from '../../contracts/outbox-ids.js';
import type { Logger } from '../../telemetry.js';
import type { CarryOut } from '../pipeline/drain-outbox.js';
import type {
  CorrectedRows,
  CorrectionStore,
  CorrectionWarehouse,
  DueErasure,
  Removal,
} from './correction-ports.js';
import { oneStatement } from './one-statement.js';

/**
 * How long a correction and what it takes away are known before anything is deleted, in milliseconds: a Redis that loses
 * its last second (everysec, up to two while the disk is busy) must not forget an order that ClickHouse has obeyed.
 */
const settleMs = 2000;
/** Most due erasures of a partition that are looked at: more than a run carries out. */
const mostDue = 200;

export interface CarryOutOptions {
  readonly store: CorrectionStore;
  readonly warehouse: CorrectionWarehouse;
  readonly logger: Logger;
}

/** Leaves corrections that are too young to a later run. Errors are those of Redis and ClickHouse: try again. */
export function createCarryOut({ store, warehouse, logger }: CarryOutOptions): CarryOut {
  return async (partitions, heads, signal) => {
    const due: Erasure[] = [];
    for (const partition of partitions)
      due.push(...firstOfLearners((await store.due(partition, mostDue)).map(erasureOf)));
    await planSome(due, signal);
    await eraseSome(due, signal);
    await rewriteSome(heads, signal);
  };

  async function planSome(due: readonly Erasure[], signal: AbortSignal | undefined): Promise<void> {
    const some = oneStatement(
      due.filter(({ plan }) => plan === null),
      rowsOf,
    );
    if (some.length === 0) return;
    const removals = await warehouse.count(some.map(rowsOf), signal);
    for (const [i, { pending }] of some.entries()) await store.plan(pending, removals[i] as Removal);
  }

  async function eraseSome(due: readonly Erasure[], signal: AbortSignal | undefined): Promise<void> {
    const some = oneStatement(
      due.filter(({ plan }) => plan !== null && plan.ageMs >= settleMs),
      rowsOf,
    );
    if (some.length === 0) return;
    const rows = some.map(rowsOf);
    await store.removeParked(rows, true);
    await warehouse.remove(rows, signal);
    for (const { pending, correction, plan } of some)
      await store.settle(pending, correction, plan?.removal as Removal);
    logger.info({ erasures: some.length }, 'due erasures were carried out');
  }

  async function rewriteSome(
    heads: readonly PendingCorrection[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const ripe: Rewriting[] = [];
    for (const head of heads) {
      const one = await ripen(head);
      if (one !== null) ripe.push(one);
    }
    const some = oneStatement(ripe, rowsOf);
    if (some.length === 0) return;
    const rows = some.map(rowsOf);
    await store.removeParked(rows, false);
    await warehouse.remove(rows, signal);
    for (const { pending, correction, removal } of some) await store.settle(pending, correction, removal);
    logger.info({ learners: some.length }, 'learners were rewritten');
  }

  /** Waits for an erasure of the same learner, which would take some of its rows for its own. @returns null: not yet */
  async function ripen(pending: PendingCorrection): Promise<Rewriting | null> {
    const correction = rewritingOf(pending);
    const due = await store.due(pending.partition, Number.MAX_SAFE_INTEGER);
    if (due.some((one) => isOfSameLearner(erasureOf(one).correction, correction))) return null;
    const plan = await store.plan(pending, removalOf(correction));
    if (plan === null || plan.ageMs < settleMs) return null;
    return { pending, correction, removal: plan.removal };
  }
}

interface Rewriting {
  readonly pending: PendingCorrection;
  readonly correction: RewriteCorrection;
  readonly removal: Removal;
}

interface Erasure extends DueErasure {
  readonly correction: EraseCorrection;
}

function erasureOf(due: DueErasure): Erasure {
  const correction = decodeCorrection(due.pending.text);
  if (correction.kind !== 'erase') throw new Error('what is due is no erasure');
  return { ...due, correction };
}

function rewritingOf({ text }: PendingCorrection): RewriteCorrection {
  const correction = decodeCorrection(text);
  if (correction.kind !== 'rewrite') throw new Error('an erasure holds up its outbox');
  return correction;
}

/** A learner who was erased twice waits for the first to end: the second would count the rows of both. */
const firstOfLearners = (due: readonly Erasure[]): Erasure[] =>
  due.filter((one, i) => !due.slice(0, i).some((other) => isOfSameLearner(one.correction, other.correction)));

const isOfSameLearner = (one: Correction, other: Correction): boolean =>
  one.tenant === other.tenant && one.userId === other.userId;

/** The rows that are computed anew come again: one answer alone is gone. */
const removalOf = ({ takenBackDay }: RewriteCorrection): Removal => ({
  answers: takenBackDay === null ? {} : { [takenBackDay]: 1 },
  before: {},
});

function rowsOf({
  pending: { partition, id },
  correction,
}: {
  readonly pending: PendingCorrection;
  readonly correction: Correction;
}): CorrectedRows {
  const { tenant, userId } = correction;
  const fromSeq = correction.kind === 'erase' ? 0 : correction.fromSeq;
  const goalAt = correction.kind === 'erase' ? correction.goalAt : 0;
  return { tenant, userId, partition, below: firstRowOf(id), fromSeq, goalAt };
}
