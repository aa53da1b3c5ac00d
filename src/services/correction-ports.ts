/** What carrying out corrections needs of Redis and ClickHouse, and what they guarantee. */
import type { Correction, PendingCorrection } from '../contracts/corrections.js';

/** A learner's rows of before a correction, from one of its answers on. */
export interface CorrectedRows {
  readonly tenant: string;
  readonly userId: string;
  readonly partition: number;
  /** The correction's outbox id: rows with a lower one. */
  readonly belowMs: number;
  readonly belowSeq: number;
  /** First learner_seq. */
  readonly fromSeq: number;
  /** Unix milliseconds of the last goal of the history that is erased. */
  readonly goalAt: number;
}

/** What a correction takes away, fixed before anything is. */
export interface Removal {
  /** Answers that are gone for good, by UTC day of arrival (number since 1970). */
  readonly answers: Readonly<Record<string, number>>;
  /** Of an erasure: what its places held, by their names. */
  readonly before: Readonly<Record<string, number>>;
}

/** An event id that was taken, and the Unix second in which its answer came. */
export interface TakenId {
  readonly eventId: string;
  readonly second: number;
}

/** Corrections in Redis. */
export interface CorrectionStore {
  /**
   * What was kept of the correction and for how many milliseconds; keeps the removal where nothing is kept yet.
   * @returns null where the correction is gone, or where nothing is kept and no removal given
   */
  plan(
    pending: PendingCorrection,
    removal: Removal | null,
  ): Promise<{ readonly removal: Removal; readonly ageMs: number } | null>;
  /** Forgets ids that were not taken again since. @returns how many */
  forgetIds(rows: CorrectedRows, ids: readonly TakenId[]): Promise<number>;
  /** Removes refused rows. @param count whether they are answers that are gone for good. @returns their event ids */
  removeParked(rows: CorrectedRows, count: boolean): Promise<TakenId[]>;
  /** Counts what is gone, tells the erasure and removes the correction: in one step, once. */
  settle(pending: PendingCorrection, correction: Correction, removal: Removal): Promise<void>;
}

/** The tables that hold rows of learners. */
export interface CorrectionWarehouse {
  /** What is there of the rows, and in the learner's other places. */
  count(rows: CorrectedRows, signal?: AbortSignal): Promise<Removal>;
  /** Event ids of the rows that came since, Unix milliseconds. */
  eventIds(rows: CorrectedRows, since: number, signal?: AbortSignal): Promise<TakenId[]>;
  /**
   * Deletes the rows and makes the rollups agree with what is left. The caller holds the partition: nobody else inserts
   * its rows meanwhile. May be repeated after any of its steps.
   */
  remove(rows: CorrectedRows, signal?: AbortSignal): Promise<void>;
}
