/** What the audit needs from Redis and ClickHouse, and what they guarantee. Days are UTC days, numbered since 1970. */
import type { OutboxId } from '../../contracts/outbox-ids.js';

/** Numbers by `TENANT:DAY` (contracts/tenant-day.ts). */
export type Tally = ReadonlyMap<string, number>;

/** Answers and right ones among them, by `TENANT:DAY`, where the day is that of occurred_at. */
export interface DailySums {
  readonly attempts: Tally;
  readonly correct: Tally;
}

/** One partition in Redis. */
export interface PartitionLook {
  readonly partition: number;
  /** Answers counted, and those of them that were erased or taken back since; by day of arrival, as of one moment. */
  readonly accepted: Tally;
  readonly removed: Tally;
  /** Days up to this one are no longer counted; -1: all are. */
  readonly prunedThrough: number;
  /** Rows of these answers that are in the outbox, or were parked; by day of arrival. */
  readonly waiting: Tally;
  readonly parked: Tally;
  /** The outbox's rows of any version by day of occurred_at. */
  readonly waitingSums: DailySums;
  /** Parked entries that hold no row that can be told apart. */
  readonly unreadable: number;
  /** Oldest id in the outbox. Rows below have left it: they were stored or parked. */
  readonly frontier: OutboxId;
  /** Id of the newest row that `accepted` counts. */
  readonly last: OutboxId;
  /** Whether an erasure or a taking back is to be carried out, in the outbox or among the due ones. */
  readonly hasCorrections: boolean;
}

export interface AuditStore {
  readonly partitions: number;
  /**
   * Looks at one partition while answers go on. What was accepted up to one moment is, each answer once: below the
   * frontier and stored, or in the outbox, or parked.
   */
  look(partition: number, signal: AbortSignal): Promise<PartitionLook>;
  /** First day that the partition counts accepted answers of; Infinity where it has counted none. */
  oldestDay(partition: number): Promise<number>;
  /**
   * Where the last history ended of learners of one partition who were erased in the last days, in their order; null of
   * others. Older rows are no longer theirs: most are on their way out.
   */
  endOfHistory(
    partition: number,
    learners: readonly Pick<DoubledNumber, 'tenant' | 'userId'>[],
  ): Promise<readonly (OutboxId | null)[]>;
  /** Changes when a Redis server was restarted or replaced, so that what was read before and after does not fit. */
  epoch(): Promise<string>;
  /** Redis' clock, Unix milliseconds. */
  now(): Promise<number>;
  /** Forgets the counts of the days up to this one, which are no longer compared from then on. */
  prune(partition: number, throughDay: number): Promise<void>;
  /** Keeps the result where all processes find it. */
  keep(record: AuditRecord): Promise<void>;
}

/** What is remembered of the last audit. */
export interface AuditRecord {
  /** When it ended, Unix milliseconds. */
  readonly at: number;
  readonly seconds: number;
  /** Mismatches by kind; kinds without any are not named. */
  readonly mismatches: Readonly<Record<string, number>>;
  /** Things that could not be compared. */
  readonly notCompared: number;
}

/** Days from `from` to `to`, both included. */
export interface DayRange {
  readonly from: number;
  readonly to: number;
}

/** Stored answers of a partition by `TENANT:DAY` of arrival. */
export interface StoredTallies {
  /** Below the frontier. */
  readonly below: Tally;
  /**
   * From the frontier to the newest row: most are in the outbox still, to leave it at once. Others were taken out of
   * its middle, when a block was stored in part.
   */
  readonly among: Tally;
}

export interface SumBounds {
  readonly attempts: number;
  readonly correct: number;
}

/** Stored answers that occurred on a day, and those whose rows were dropped for their age. */
export interface RawSums {
  /** Those that had left the outbox at the look before: every rollup has them. */
  readonly certain: SumBounds;
  readonly all: SumBounds;
}

/** Answers of a learner with the same number. */
export interface DoubledNumber {
  readonly partition: number;
  readonly tenant: string;
  readonly userId: string;
  readonly day: number;
  readonly ids: readonly OutboxId[];
}

/** Rows that are there twice. */
export interface DoubledRows {
  readonly partition: number;
  readonly tenant: string;
  readonly day: number;
  /** Rows beyond the first of each. */
  readonly surplus: number;
}

export interface AuditWarehouse {
  /** Names of the rollups, each compared for itself. */
  readonly rollups: readonly string[];
  /** Makes all replicas have what any of them took. */
  catchUp(signal: AbortSignal): Promise<void>;
  /** Last day of arrival whose rows were or may be dropped for their age; -1: none. */
  archivedThrough(signal: AbortSignal): Promise<number>;
  /** Stored answers by partition, as of the looks; those of before answers were counted (ADR 23) are left out. */
  stored(
    days: DayRange,
    looks: readonly PartitionLook[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<number, StoredTallies>>;
  /** Rows with an outbox id that another row has. */
  doubledIds(days: DayRange, signal: AbortSignal): Promise<readonly DoubledRows[]>;
  /** Answers of a learner with the same number, but different outbox ids. */
  doubledNumbers(days: DayRange, signal: AbortSignal): Promise<readonly DoubledNumber[]>;
  /** By `TENANT:DAY` of occurred_at. */
  rawSums(
    days: DayRange,
    looks: readonly PartitionLook[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, RawSums>>;
  rollupSums(rollup: string, days: DayRange, signal: AbortSignal): Promise<ReadonlyMap<string, SumBounds>>;
}
