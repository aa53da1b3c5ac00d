/**
 * Payloads of the background jobs, with their versions.
 *
 * Rolling deploys: a newer process reads every older version named here; an older process that meets a newer
 * version fails the attempt, and the job waits for a newer process. So: add a version, never change one.
 */

/** Queue of the drain jobs, see services/pipeline/drain-outbox.ts. */
export const drainQueueName = 'drain';

/** Prefix of the queues' keys: the hash tag keeps a queue on one node of a Redis Cluster. */
export const queuePrefix = '{bull-0}';

/**
 * Groups of partitions that are drained together, one insert each: partition modulo this number.
 * Two, because about one insert a second into a table is what ClickHouse likes and one per partition would be
 * sixteen, while a second group keeps one slow or retried block from holding up everybody.
 * Hazard: a job in the queue keeps its partitions' ranges, so that a change of this number would let two jobs
 * drain one range under two tokens. Change it only together with the queue's name and with an empty outbox.
 */
export const drainShards = 2;

/** Entries of one partition's outbox from `from` to `to`, both included, as they were when the range was fixed. */
export interface OutboxRange {
  partition: number;
  /** Redis stream ids, `milliseconds-sequence`. */
  from: string;
  to: string;
  /** How many rows there are between them; erasures are passed (contracts/corrections.ts). */
  rows: number;
}

/** What a drain job inserts, whoever runs it and however often. */
export interface FixedBatch {
  ranges: OutboxRange[];
  rows: number;
  /** Unix milliseconds on Redis' clock. */
  fixedAt: number;
  /** The block's token alone is not to be trusted: ask ClickHouse which rows it has. */
  verify: boolean;
  /** Its one entry was refused as a whole: its rows are stored one by one, each under a token of its own. */
  byRow?: boolean;
}

export interface DrainJobData {
  v: 1;
  shard: number;
  /** null until the first attempt has fixed the ranges. */
  batch: FixedBatch | null;
}

/** One id per shard, so that at most one of its jobs is outstanding. */
export const drainJobId = (shard: number): string => `drain-${shard}`;

/** Queue of the fits: one job a run, which goes through the tenants. */
export const fitQueueName = 'fit';

/** Queue of the audits, see services/audit/audit.ts. */
export const auditQueueName = 'audit';

/** Queue of the journal's runs, see services/pipeline/drain-journal.ts. */
export const journalQueueName = 'journal';

/** Queue of the runs that drop old answers, see services/retention/retain-answers.ts. */
export const retentionQueueName = 'retention';

/** Of a scheduled job, nothing but the version: a run finds out itself what there is to do. */
export interface ScheduledJobData {
  v: 1;
}
