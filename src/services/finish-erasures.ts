/**
 * Finishes erasures whose corrections were carried out: what came over the journal, marks of imports, and the proof. Runs
 * with the journal, behind its drain, so that no page of it is under way; each step may be repeated.
 */
import type { Logger } from '../telemetry.js';
import type { CorrectedRows } from './correction-ports.js';
import type {
  EndedHistories,
  EndedLearner,
  ErasureLeftovers,
  ErasureReceipt,
  ErasureStore,
  ErasureWarehouse,
  OpenErasure,
} from './erasure-ports.js';

/** How long a forecast may be under way that was made from the erased states, in milliseconds. */
const forecastMs = 3000;

/**
 * A process that stood still may bring something after the end: it is looked for after an hour and after some days, when
 * the learner is forgotten. In milliseconds.
 */
const looksAfter = [3_600_000, 7 * 86_400_000] as const;
/** Learners of one question. */
const lookedTogether = 200;

export interface FinishOptions {
  readonly erasures: ErasureStore;
  readonly ended: EndedHistories;
  readonly leftovers: ErasureLeftovers;
  readonly warehouse: ErasureWarehouse;
  readonly logger: Logger;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Errors are those of Redis and ClickHouse: the next run goes on. @returns how many are done now */
export function createErasureFinisher(options: FinishOptions): (signal?: AbortSignal) => Promise<number> {
  const { erasures, ended, leftovers, warehouse, logger, now } = options;

  return async (signal) => {
    let done = 0;
    for (const erasure of await erasures.open()) {
      if (signal?.aborted === true) break;
      if (erasure.before === null || now() - erasure.requestedAt < forecastMs) continue;
      if (await finish(erasure, erasure.before)) done += 1;
    }
    if (await erasures.takeHourlyTurn()) await lookAgain();
    if (await erasures.takeDailyTurn()) await warehouse.purge();
    return done;
  };

  async function lookAgain(): Promise<void> {
    const due = (await ended.all()).filter((one) => isDue(one, now()));
    for (let at = 0; at < due.length; at += lookedTogether) {
      const some = due.slice(at, at + lookedTogether);
      const byHash = new Map(some.map((one) => [one.hash, one]));
      for (const { hash, userId } of await warehouse.findAgain(some)) {
        const one = byHash.get(hash);
        if (one !== undefined) await removeAgain({ ...one, userId, fromSeq: 0 });
      }
      for (const one of some) await ended.looked(one, one.looks + 1 < looksAfter.length);
    }
  }

  async function removeAgain(rows: CorrectedRows): Promise<void> {
    await leftovers.removeWaiting(rows);
    await warehouse.removeLate(rows);
  }

  /** @returns whether nothing is left */
  async function finish(erasure: OpenErasure, before: ErasureReceipt['before']): Promise<boolean> {
    const rows = rowsOf(erasure);
    await leftovers.removeWaiting(rows);
    const marks = await leftovers.removeMarks(rows);
    await warehouse.removeLate(rows);
    const after = await warehouse.prove(rows);
    if (marks > 0 || Object.values(after).some((left) => left > 0)) {
      logger.debug({ erasure: erasure.id, after, marks }, 'an erasure is not done yet');
      return false;
    }
    const { id, tenant, requestedAt, removed } = erasure;
    const proof = warehouse.proofOf(rows);
    await warehouse.keep({ id, tenant, requestedAt, doneAt: now(), removed, before, after, proof });
    await erasures.close(erasure);
    logger.info({ erasure: id, before }, 'an erasure is done');
    return true;
  }
}

const isDue = ({ at, looks }: EndedLearner, now: number): boolean => now - at >= (looksAfter[looks] ?? 0);

function rowsOf({ tenant, userId, partition, correction, goalAt }: OpenErasure): CorrectedRows {
  const [belowMs, belowSeq] = correction.split('-').map(Number) as [number, number];
  return { tenant, userId, partition, belowMs, belowSeq, fromSeq: 0, goalAt };
}
