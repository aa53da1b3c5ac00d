/** What the stream pipeline needs from Redis and ClickHouse, and what they guarantee. */
import type { PendingCorrection } from '../../contracts/corrections.js';
import type { FixedBatch, OutboxRange } from '../../contracts/jobs.js';

/** Rows of the outbox as TSV lines: outbox columns, then the encoded row (contracts/attempt-row.ts). */
export interface OutboxBatch {
  /** One per partition that has rows here, with the first and last id that were read. */
  ranges: OutboxRange[];
  rows: number;
  /** Entries that these rows are of. */
  entries: number;
  /** Whole lines, each ending in a line feed, in the order of the outbox. */
  chunks: Buffer[];
  /** Entries between the rows that hold no row at all, which no table could take. */
  unreadable: OutboxEntries[];
  /** Erasures before, among and behind the rows, in order; the ranges have those that have rows behind them. */
  erasures: PendingCorrection[];
  /**
   * Other corrections, of partitions where one comes before everything. What is behind such a one is never read before
   * it is gone.
   */
  corrections: PendingCorrection[];
}

/** Entries of one partition's outbox, by their ids. */
export interface OutboxEntries {
  partition: number;
  ids: string[];
}

/** An entry of the outbox with its rows, without their outbox columns. */
export interface StoredEntry {
  partition: number;
  id: string;
  rows: readonly Buffer[];
}

/** A row that ClickHouse refuses. */
export interface RefusedRow {
  /** As text (contracts/outbox-ids.ts). */
  id: string;
  /** Without its outbox columns. */
  row: Buffer;
  reason: string;
}

export interface BatchLimits {
  /** Beyond it only what is of one entry. */
  maxRows: number;
  /** Soft: reading stops after the page that reaches it. */
  maxBytes: number;
}

export interface PartitionBacklog {
  partition: number;
  length: number;
  /** Id of the oldest entry, null when there is none. */
  head: string | null;
  /** Erasures that left the outbox and are not carried out. */
  due: number;
}

/** Identity of the Redis data in use, and its clock. */
export interface OutboxEpoch {
  /** Changes whenever a Redis server was restarted or replaced, so that acknowledged writes may be gone. */
  id: string;
  /** Redis' clock, Unix milliseconds. */
  ms: number;
}

/** The last row that a partition's outbox was ever given, and when that was asked. */
export interface LastRow {
  readonly partition: number;
  readonly ms: number;
  readonly seq: number;
  /** Redis' clock, Unix milliseconds: rows added later have this in their ids or more. */
  readonly askedAt: number;
}

/** Figures of the pipeline for health and metrics, the same in every process. */
export interface PipelineFacts {
  outboxLength: number;
  /** Erasures that left the outbox and are not carried out. */
  erasuresDue: number;
  /** Age of the oldest entry by Redis' clock; 0 when nothing waits. */
  oldestPendingSeconds: number;
  /** Rows put aside because ClickHouse refused their content. */
  parked: number;
  /** Partitions whose parked rows are at their bound: the next one that is refused waits, and what is behind it. */
  fullyParked: number;
}

/** The attempts that are committed in Redis and not yet known to be in ClickHouse. */
export interface Outbox {
  backlog(partitions: readonly number[]): Promise<PartitionBacklog[]>;
  /** The oldest rows of the partitions, shared fairly among them; removes nothing. */
  next(partitions: readonly number[], limits: BatchLimits): Promise<OutboxBatch>;
  /**
   * The rows of fixed ranges that are still there, byte for byte as `next` gave them.
   * @param skip rows to leave out, each as `partition\tms\tseq`
   */
  read(ranges: readonly OutboxRange[], skip?: ReadonlySet<string>): Promise<OutboxBatch>;
  /**
   * Removes every entry up to the end of each range, and puts the erasures that were read where the due ones are: in one
   * step for each partition. Doing it again does nothing.
   */
  trim(read: Pick<OutboxBatch, 'ranges' | 'erasures'>): Promise<void>;
  /**
   * Moves entries as they are to where refused ones are kept, each in one step. Entries that are gone are passed over.
   * @returns how many had to stay where they are, for want of room
   */
  park(entries: OutboxEntries, reason: string): Promise<number>;
  /**
   * Removes an entry of which all rows but the refused are stored, and moves these to where refused ones are kept, in one
   * step. Does nothing where the entry is gone, or its id has other rows by now.
   * @returns false where there is no room for them: the entry stays
   */
  parkRows(entry: StoredEntry, refused: readonly RefusedRow[]): Promise<boolean>;
  epoch(): Promise<OutboxEpoch>;
  facts(): Promise<PipelineFacts>;
}

/** ClickHouse refuses what at least one row of a block says: no other attempt would be taken. */
export class ContentRefused extends Error {
  /** @param reason name of ClickHouse's error; its text would quote the row */
  constructor(readonly reason: string) {
    super(`ClickHouse refuses the content of a row: ${reason}`);
  }
}

/** The table `attempts` with its rollups. A signal ends the call, not always what the server is doing. */
export interface AttemptWarehouse {
  /**
   * Inserts the rows as one block. Resolves only when the table and every rollup have them. The same rows under
   * the same token, among the last 10,000 blocks, count once in the table and in each rollup, and complete
   * whatever an interrupted insert left out.
   * @throws ContentRefused: the table has none of the rows, unless it is a rollup that refuses them
   */
  insert(chunks: readonly Buffer[], token: string, signal?: AbortSignal): Promise<void>;
  /** How many rows of the ranges the table has. */
  countPresent(ranges: readonly OutboxRange[], signal?: AbortSignal): Promise<number>;
  /** Which rows of the ranges the table has, each as `partition\tms\tseq`. */
  presentRows(ranges: readonly OutboxRange[], signal?: AbortSignal): Promise<Set<string>>;
  /**
   * Makes the rollups of all days that the ranges touch agree with the table. The caller holds the partitions:
   * nobody else inserts their rows meanwhile.
   * @returns names of the rollups that had to be computed again
   */
  repairRollups(ranges: readonly OutboxRange[], signal?: AbortSignal): Promise<string[]>;
  isAlive(): Promise<boolean>;
}

/**
 * Carries out some of the partitions' due erasures, and corrections at the heads of their outboxes. May be repeated after
 * any step, also by another process.
 */
export type CarryOut = (
  partitions: readonly number[],
  heads: readonly PendingCorrection[],
  signal?: AbortSignal,
) => Promise<void>;

/** Drains one group of partitions once. */
export type DrainShard = (task: DrainTask) => Promise<DrainResult>;

export interface DrainTask {
  partitions: readonly number[];
  /** What an earlier attempt of this job fixed. */
  batch: FixedBatch | null;
  /** Keeps the batch for later attempts; resolves when it is kept. */
  save(batch: FixedBatch): Promise<void>;
  /** Fewer rows than usual, for what was refused in one block. */
  maxRows?: number;
  /** Some of the rows may be stored: ClickHouse is asked. */
  verify?: boolean;
  signal?: AbortSignal;
}

export interface DrainResult {
  rows: number;
  /** Rows that ClickHouse already had when asked. */
  present: number;
}
