/**
 * Payloads of jobs, with their version. Rolling deploys: a newer process reads every older version named here; an
 * older process that meets a newer one fails the attempt, and the job waits. So: add a version, never change one.
 */

/** Prefix of the queues' keys: the hash tag keeps a queue on one node of a Redis Cluster. */
export const queuePrefix = '{bull-0}';

export const drainQueueName = 'drain';

/**
 * Groups of partitions (partition modulo this number) that are drained together, one insert each: ClickHouse likes about one
 * insert a second into a table, and a second group keeps a slow or retried block from holding up everybody.
 * Hazard: a job in the queue keeps its partitions' ranges. Another number would let two jobs drain one range under two
 * tokens: change it only together with the queue's name and with an empty outbox.
 */
export const drainShards = 2;

/** One id per shard, so that at most one of its jobs is outstanding. */
export const drainJobId = (shard: number): string => `drain-${shard}`;

/** Entries of one partition's outbox from `from` to `to`, both included, as they were when the range was fixed. */
export interface OutboxRange {
  partition: number;
  from: string;
  to: string;
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

export const deliveryQueueName = 'deliver';

/** One id per endpoint, so that one run at a time sends its messages. */
export const deliveryJobId = (webhookId: string): string => `deliver-${webhookId}`;

/** Sends what is due of one endpoint; which messages these are, Redis knows. */
export interface DeliveryJobData {
  v: 1;
  tenant: string;
  id: string;
}
