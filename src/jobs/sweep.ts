/**
 * Decides when a shard is drained. The sweep is what starts every job, and starts a
 * lost one again: an outbox with rows in it is drained whatever the queue has forgotten.
 */
import { drainShards } from '../contracts/jobs.js';
import type { Outbox } from '../store/outbox/outbox.js';
import { partitionsOf } from './drain-queue.js';

/** A few rows are drained about once a second, so that an answer is soon to be seen. */
const restMs = 900;
/**
 * What a block costs ClickHouse is mostly the same for a hundred rows as for thousands, and small parts are merged
 * again and again: where rows keep coming, longer rests make fewer and larger blocks.
 */
const busyRows = 200;
const busyRestMs = 2000;
/** This many rows do not wait for the second to end. */
const eagerRows = 20_000;

export interface SweepOptions {
  outbox: Outbox;
  partitions: number;
  arm(shard: number): Promise<void>;
  /** Milliseconds on a clock that only goes forward. */
  now(): number;
}

export interface Sweep {
  /** Looks once. `hurry` drains whatever there is, without a rest. Resolves with the rows and erasures that wait. */
  look(hurry: boolean): Promise<number>;
}

export function createSweep({ outbox, partitions, arm, now }: SweepOptions): Sweep {
  const shards = Array.from({ length: drainShards }, (_, shard) => ({
    shard,
    partitions: partitionsOf(shard, partitions),
    armedAt: Number.NEGATIVE_INFINITY,
  }));

  async function lookAt(state: (typeof shards)[number], hurry: boolean): Promise<number> {
    const backlog = await outbox.backlog(state.partitions);
    const rows = backlog.reduce((total, { length, due }) => total + length + due, 0);
    if (rows > 0 && (hurry || now() - state.armedAt >= restBefore(rows))) {
      state.armedAt = now();
      await arm(state.shard);
    }
    return rows;
  }

  return {
    async look(hurry) {
      const rows = await Promise.all(shards.map((state) => lookAt(state, hurry)));
      return rows.reduce((total, count) => total + count, 0);
    },
  };
}

/** Milliseconds from one block to the next. */
function restBefore(rows: number): number {
  if (rows >= eagerRows) return 0;
  return rows < busyRows ? restMs : busyRestMs;
}
