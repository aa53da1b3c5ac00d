/**
 * Finishes erasures whose corrections were applied, many together: what came over the journal, marks of imports, and the
 * proof. Runs with the journal, behind its drain, so that no page of it is in flight. Each step may be repeated.
 */
import type { CorrectedRows, Counts } from '../../contracts/corrections.js';
import { inParts } from '../../lists.js';
import type { ErasureStore, OpenErasure } from '../../store/corrections/erasures.js';
import type { Logger } from '../../telemetry.js';
import type {
  CorrectionWarehouse,
  ErasureReceipt,
} from '../../warehouse/maintenance/correction-warehouse.js';
import { oneStatement } from './apply-corrections.js';

/** How long a forecast from the erased states may be in flight, in milliseconds. */
const forecastMs = 3000;

/**
 * A process that stood still may bring rows after the end. ClickHouse is asked for them after an hour and after some days,
 * when the learner is forgotten. In milliseconds.
 */
const looksAfter = [3_600_000, 7 * 86_400_000] as const;
/** Learners of one question. */
const lookedTogether = 200;

export interface FinishOptions {
  readonly store: ErasureStore;
  readonly warehouse: CorrectionWarehouse;
  readonly logger: Logger;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Errors are those of Redis and ClickHouse: the next run goes on. @returns how many are done now */
export function createErasureFinisher({ store, warehouse, logger, now }: FinishOptions) {
  return async (signal?: AbortSignal): Promise<number> => {
    let done = 0;
    for (let left = (await store.open()).filter(isApplied); left.length > 0 && !signal?.aborted; ) {
      const some = oneStatement(left);
      done += await finish(some);
      left = left.filter((erasure) => !some.includes(erasure));
    }
    if (await store.takeTurn('look')) await lookAgain();
    if (await store.takeTurn('purge')) await warehouse.purge();
    return done;
  };

  function isApplied(erasure: OpenErasure): erasure is AppliedErasure {
    return erasure.before !== null && now() - erasure.requestedAt >= forecastMs;
  }

  /** @returns of how many nothing is left */
  async function finish(some: readonly AppliedErasure[]): Promise<number> {
    const rows = some.map((erasure) => erasure.rows);
    const marked = await store.removeMarks(rows);
    await store.forgetSkills(rows);
    await removeLate(rows);
    const left = await warehouse.prove(rows);
    const receipts = some.flatMap((erasure, i) => {
      const after = left[i] ?? {};
      if (!marked.has(erasure.rows) && Object.values(after).every((n) => n === 0))
        return [receiptOf(erasure, after)];
      logger.debug({ erasure: erasure.id, after }, 'an erasure is not done yet');
      return [];
    });
    if (receipts.length > 0) await warehouse.keep(receipts);
    for (const { id, before } of receipts) {
      await store.close(some.find((erasure) => erasure.id === id) as OpenErasure);
      logger.info({ erasure: id, before }, 'an erasure is done');
    }
    return receipts.length;
  }

  async function removeLate(rows: readonly CorrectedRows[]): Promise<void> {
    await store.removeWaiting(rows);
    await warehouse.removeLate(rows);
  }

  function receiptOf({ rows, ...erasure }: AppliedErasure, after: Counts): ErasureReceipt {
    return { ...erasure, tenant: rows.tenant, doneAt: now(), after, proof: warehouse.proofOf(rows) };
  }

  async function lookAgain(): Promise<void> {
    const due = (await store.erased()).filter(({ at, looks }) => now() - at >= (looksAfter[looks] ?? 0));
    for (const some of inParts(due, lookedTogether)) {
      const byHash = new Map(some.map((one) => [one.hash, one]));
      for (const { hash, userId } of await warehouse.findAgain(some)) {
        const one = byHash.get(hash);
        if (one !== undefined) await removeLate([{ ...one, userId, fromSeq: 0 }]);
      }
      for (const one of some) await store.noteLook(one, one.looks + 1 === looksAfter.length);
    }
  }
}

interface AppliedErasure extends OpenErasure {
  readonly before: Counts;
}
