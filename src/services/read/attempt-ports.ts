/** A learner's counted answers, read back from wherever they are, and what may be relied on. */
import type { AttemptRow } from '../../contracts/attempt-row.js';
import type { LearnerState } from '../../domain/base/types.js';
import { newLearner } from '../../domain/tracing/mastery.js';

/** Where an answer is stored: in ClickHouse, on its way there, or put aside because ClickHouse refused it. */
export type AttemptPlace = 'clickhouse' | 'outbox' | 'parked';

export interface FoundAttempt {
  readonly place: AttemptPlace;
  readonly row: AttemptRow;
}

/** A row in Redis; `row` is null where this version of the service cannot read the line. */
export interface WaitingAttempt {
  readonly place: AttemptPlace;
  readonly line: string;
  readonly row: AttemptRow | null;
}

/** The answers that are in Redis only, as far as is known. @throws ApiError UNAVAILABLE */
export interface WaitingAttempts {
  /**
   * The learner's, a page at a time, each newest first: those on their way, then those put aside. Of several with one
   * number, which a correction leaves for a while, the first is the one that counts, and it goes before a stored one.
   * Who asks ClickHouse when this has ended misses none: an answer leaves here only after it is there.
   */
  of(tenant: string, userId: string): AsyncIterable<readonly WaitingAttempt[]>;
}

/** Part of a learner's answers by their numbers, both bounds included. */
export interface AttemptRange {
  readonly tenant: string;
  readonly userId: string;
  readonly from: number;
  readonly to: number;
  readonly order: 'newest first' | 'oldest first';
  readonly atMost: number;
}

/** The answers in ClickHouse. */
export interface StoredAttempts {
  /**
   * The first ones of the range, one for each number: of several that a Redis restored from an older copy gave the same
   * number, the one that was counted last.
   * @throws what ClickHouse says, when it is away or does not answer in a few seconds
   */
  read(range: AttemptRange): Promise<readonly FoundAttempt[]>;
}

/** A learner's whole history in ClickHouse. */
export interface StoredHistories {
  /** Rows up to a number, as lines, and the state that they follow on where older ones were dropped for their age. */
  read(
    tenant: string,
    userId: string,
    to: number,
  ): Promise<{ readonly stored: string; readonly snapshot: string | null }>;
}

/**
 * Whether a learner's state goes on from an earlier one, so that what was read in between is of one history. Every
 * commit adds one to the version and an answer at least; an erasure or a correction does otherwise. The first answer
 * begins a history, at any version: whatever comes follows on none.
 */
export const follows = (before: LearnerState, now: LearnerState): boolean =>
  before.version === newLearner.version ||
  (now.version >= before.version && now.attempts - before.attempts >= now.version - before.version);
