/** A job with an unknown version `v` fails its attempt and waits. */

/** The hash tag puts the queues on one node of a Redis Cluster. */
export const queuePrefix = '{bull-0}';

export const drainQueueName = 'drain';

/**
 * A partition's shard is its number modulo this. ClickHouse prefers about one insert per second and table; a
 * second shard prevents a slow block from delaying all partitions.
 * Hazard: queued jobs store their ranges. With another number, two jobs would drain a range under two tokens.
 * Change it only with the queue's name and an empty outbox.
 */
export const shardCount = 2;

export const drainJobId = (shard: number): string => `drain-${shard}`;

/** The bounds are part of the range. */
export interface OutboxRange {
  partition: number;
  from: string;
  to: string;
  rows: number;
}

/** All attempts of a job use the same batch. */
export interface PinnedBlock {
  ranges: OutboxRange[];
  rows: number;
  /** Unix milliseconds on Redis' clock. */
  fixedAt: number;
  /** Ask ClickHouse which rows it has: the block's token is not enough. */
  verify: boolean;
  /** ClickHouse rejected the only entry: store its rows one by one. */
  byRow?: boolean;
}

export interface DrainJobData {
  v: 1;
  shard: number;
  /** Null until the first attempt fixes the ranges. */
  batch: PinnedBlock | null;
}

export const deliveryQueueName = 'deliver';

export const deliveryJobId = (webhookId: string): string => `deliver-${webhookId}`;

export interface DeliveryJobData {
  v: 1;
  tenant: string;
  id: string;
}
