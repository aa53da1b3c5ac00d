/** What archiving old answers needs of Redis and ClickHouse, and what they guarantee. Months are written as 202601. */
import type { AttemptRow } from '../../contracts/attempt-row.js';

/** Learners of one tenant whose ids lie next to one another. */
export interface LearnerPage {
  readonly tenant: string;
  /** First and last id, both included, in the order of their bytes. */
  readonly from: string;
  readonly to: string;
}

export interface StoredMonth {
  readonly month: number;
  readonly answers: number;
}

/** The answers in ClickHouse by month of arrival. Every call may be repeated, also by several processes at once. */
export interface AnswerArchive {
  /** The months up to the given one that have rows, oldest first. */
  monthsUpTo(month: number): Promise<StoredMonth[]>;
  /** The last month that is archived; 0: none. Its answers count by their sums alone. */
  archivedThrough(): Promise<number>;
  tenantsOf(month: number): Promise<string[]>;
  /** The next learners with rows of the month behind the given id; null: none. */
  nextPage(month: number, tenant: string, after: string): Promise<LearnerPage | null>;
  /** Writes the sums that the learners' answers of the month make; they count when the month is archived. */
  archive(month: number, page: LearnerPage): Promise<void>;
  /**
   * Takes away sums and snapshots of the month whose learners have no rows in it: they were erased after these were
   * read. Nothing is taken where the rows are gone already.
   * @returns how many learners
   */
  forgetErased(month: number, tenant: string): Promise<number>;
  /** What is wrong with the archive of the month, compared with its rows, or null. */
  differs(month: number): Promise<string | null>;
  /** From here on the month counts by its sums. */
  markArchived(stored: StoredMonth): Promise<void>;
  /** Drops the rows of the month. */
  drop(month: number): Promise<void>;
}

/** Learners' states after the last of their answers up to a month. */
export interface SnapshotWriter {
  write(month: number, page: LearnerPage): Promise<SnapshotsWritten>;
}

export interface SnapshotsWritten {
  /** Snapshots that were missing, or older. */
  readonly written: number;
  /** Learners among them with answers that are nowhere: the states are those that a rebuild would give. */
  readonly incomplete: number;
}

/** A row with the Redis partition that it was written for. */
export interface PlacedRow {
  readonly row: AttemptRow;
  readonly partition: number;
}

export interface LearnerSnapshot {
  readonly userId: string;
  readonly partition: number;
  /** Number of the last answer that the state has. */
  readonly learnerSeq: number;
  readonly state: string;
}

/** The snapshots in ClickHouse, and the rows that they are made of. */
export interface SnapshotStore {
  /** States by user id. */
  latest(page: LearnerPage): Promise<Map<string, string>>;
  /**
   * The learners' rows up to the last one that arrived in the month or before, with what was committed together with
   * it, in the order of `learner_seq`.
   */
  rowsUpTo(month: number, page: LearnerPage): Promise<PlacedRow[]>;
  /** A learner's later snapshot takes the place of the earlier one. */
  save(month: number, tenant: string, snapshots: readonly LearnerSnapshot[]): Promise<void>;
}

/** Keeps answers on their way to ClickHouse apart from what is archived. */
export interface RetentionFence {
  /**
   * From now on nothing that arrived up to the month is taken back, which would write its rows anew.
   * Resolves with the reason why answers of the month may still be on their way, or null.
   */
  close(month: number): Promise<string | null>;
}

/** Served forecasts by the month in which they were made. */
export interface ForecastArchive {
  /** The months up to the given one whose forecasts are all scored: their last days are over. */
  scoredMonthsUpTo(month: number): Promise<number[]>;
  drop(month: number): Promise<void>;
}
