/** A learner's counted answers, read back from wherever they are, and what may be relied on. */
import type { AttemptRow } from '../contracts/attempt-row.js';

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
   * The learner's, a page at a time: first those on their way, oldest first, then those put aside. Who asks ClickHouse
   * when this has ended misses none: an answer leaves here only after it is there.
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
