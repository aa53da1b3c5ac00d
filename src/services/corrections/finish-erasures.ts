/**
 * Finishes erasures whose corrections were carried out, many together: what came over the journal, marks of imports, and
 * the proof. Runs with the journal, behind its drain, so that no page of it is under way; each step may be repeated.
 */
import { firstRowOf } from '../../contracts/outbox-ids.js';
import { inParts } from '../../lists.js';
import type { Logger } from '../../telemetry.js';
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
import { oneStatement } from './one-statement.js';

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
    for (let left = (await erasures.open()).flatMap(carriedOut); left.length > 0 && !signal?.aborted; ) {
      const some = oneStatement(left, (erasure) => erasure);
      done += await finish(some);
      left = left.filter((erasure) => !some.includes(erasure));
    }
    if (await erasures.takeHourlyTurn()) await lookAgain();
    if (await erasures.takeDailyTurn()) await warehouse.purge();
    return done;
  };

  async function lookAgain(): Promise<void> {
    const due = (await ended.all()).filter((one) => isDue(one, now()));
    for (const some of inParts(due, lookedTogether)) {
      const byHash = new Map(some.map((one) => [one.hash, one]));
      for (const { hash, userId } of await warehouse.findAgain(some)) {
        const one = byHash.get(hash);
        if (one !== undefined) await removeLate([{ ...one, userId, fromSeq: 0 }]);
      }
      for (const one of some) await ended.looked(one, one.looks + 1 < looksAfter.length);
    }
  }

  async function removeLate(rows: readonly CorrectedRows[]): Promise<void> {
    await leftovers.removeWaiting(rows);
    await warehouse.removeLate(rows);
  }

  /** @returns of how many nothing is left */
  async function finish(some: readonly CarriedOut[]): Promise<number> {
    const rows = some.map(rowsOf);
    const marks = await leftovers.removeMarks(rows);
    await leftovers.forgetSkills(rows);
    await removeLate(rows);
    const left = await warehouse.prove(rows);
    const done = some.flatMap((erasure, i) => {
      const after = left[i] ?? {};
      if (marks[i] === 0 && Object.values(after).every((n) => n === 0)) return { erasure, after };
      logger.debug({ erasure: erasure.id, after, marks: marks[i] }, 'an erasure is not done yet');
      return [];
    });
    if (done.length > 0) await warehouse.keep(done.map(({ erasure, after }) => receiptOf(erasure, after)));
    for (const { erasure } of done) {
      await erasures.close(erasure);
      logger.info({ erasure: erasure.id, before: erasure.before }, 'an erasure is done');
    }
    return done.length;
  }

  function receiptOf(erasure: CarriedOut, after: ErasureReceipt['after']): ErasureReceipt {
    const { id, tenant, requestedAt, removed, before } = erasure;
    const proof = warehouse.proofOf(rowsOf(erasure));
    return { id, tenant, requestedAt, doneAt: now(), removed, before, after, proof };
  }

  function carriedOut(erasure: OpenErasure): CarriedOut[] {
    const { before } = erasure;
    return before === null || now() - erasure.requestedAt < forecastMs ? [] : [{ ...erasure, before }];
  }
}

type CarriedOut = OpenErasure & Pick<ErasureReceipt, 'before'>;

const isDue = ({ at, looks }: EndedLearner, now: number): boolean => now - at >= (looksAfter[looks] ?? 0);

function rowsOf({ tenant, userId, partition, correction, goalAt }: OpenErasure): CorrectedRows {
  return { tenant, userId, partition, below: firstRowOf(correction), fromSeq: 0, goalAt };
}
