/** What carrying out corrections needs of Redis and ClickHouse, and what they guarantee. */
import type { Correction, PendingCorrection } from '../../contracts/corrections.js';
import type { OutboxId } from '../../contracts/outbox-ids.js';

/** A learner's rows of before a correction, from one of its answers on. */
export interface CorrectedRows {
  readonly tenant: string;
  readonly userId: string;
  readonly partition: number;
  /** Rows with a lower id: those of entries before the correction. */
  readonly below: OutboxId;
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

/** An erasure that left the outbox, where everything before it is stored. */
export interface DueErasure {
  readonly pending: PendingCorrection;
  /** Null where nothing is kept yet. */
  readonly plan: KeptPlan | null;
}

/** What is kept of a correction, and for how many milliseconds. */
export interface KeptPlan {
  readonly removal: Removal;
  readonly ageMs: number;
}

/** Corrections in Redis. */
export interface CorrectionStore {
  /** The oldest due erasures of a partition, without those that the outbox has come back to: all before them is stored. */
  due(partition: number, most: number): Promise<DueErasure[]>;
  /**
   * What was kept of the correction; keeps the removal where nothing is kept yet.
   * @returns null where the correction is gone, or where nothing is kept and no removal given
   */
  plan(pending: PendingCorrection, removal: Removal | null): Promise<KeptPlan | null>;
  /** Removes refused rows. @param count whether they are answers that are gone for good */
  removeParked(rows: readonly CorrectedRows[], count: boolean): Promise<void>;
  /** Counts what is gone, tells the erasure and removes the correction: in one step, once. */
  settle(pending: PendingCorrection, correction: Correction, removal: Removal): Promise<void>;
}

/** The tables that hold rows of learners. Each learner may be given once. */
export interface CorrectionWarehouse {
  /** What is there of each one's rows, and in the learner's other places; in their order. */
  count(rows: readonly CorrectedRows[], signal?: AbortSignal): Promise<Removal[]>;
  /**
   * Deletes the rows and makes the rollups agree with what is left. The caller holds the partitions: nobody else inserts
   * their rows meanwhile. May be repeated after any of its steps, also with other learners.
   */
  remove(rows: readonly CorrectedRows[], signal?: AbortSignal): Promise<void>;
}
