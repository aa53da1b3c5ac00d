/** A process that does not know a job's version fails the attempt, and the job waits. */

/** The hash tag keeps a queue on one node of a Redis Cluster. */
export const queuePrefix = '{bull-0}';

export const drainQueueName = 'drain';

/**
 * Partitions (modulo this number) that are drained together with one insert: ClickHouse prefers about one insert a second per
 * table, and a second group keeps a slow block from delaying all partitions. Hazard: a queued job keeps its ranges. With another
 * number, two jobs would drain one range under two tokens: change it only with the queue's name and an empty outbox.
 */
export const drainShards = 2;

/** At most one pending job per shard. */
export const drainJobId = (shard: number): string => `drain-${shard}`;

/** Entries of a partition's outbox, bounds included, as of when the range was fixed. */
export interface OutboxRange {
  partition: number;
  from: string;
  to: string;
  rows: number;
}

/** Insert of a drain job, the same in every attempt. */
export interface FixedBatch {
  ranges: OutboxRange[];
  rows: number;
  /** Unix milliseconds on Redis' clock. */
  fixedAt: number;
  /** Ask ClickHouse which rows it has: the block's token is not enough. */
  verify: boolean;
  /** ClickHouse rejected the only entry: its rows are stored one by one, each with a token. */
  byRow?: boolean;
}

export interface DrainJobData {
  v: 1;
  shard: number;
  /** Null until the first attempt has fixed the ranges. */
  batch: FixedBatch | null;
}

export const deliveryQueueName = 'deliver';

/** At most one run per endpoint sends its messages. */
export const deliveryJobId = (webhookId: string): string => `deliver-${webhookId}`;

export interface DeliveryJobData {
  v: 1;
  tenant: string;
  id: string;
}
