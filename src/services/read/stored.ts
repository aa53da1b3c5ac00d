import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../../errors.js';

/** For reads of what ClickHouse has stored, which answers come to a moment after they were counted. */
export interface StoredPorts {
  /** Age of the oldest answer that is not stored yet; null where that is not known. */
  readonly sourceLagSeconds: () => Promise<number | null>;
}

export interface StoringPorts {
  /** Age of the oldest answer that is not stored yet; 0 where all are. @throws ApiError UNAVAILABLE */
  readonly oldestPendingSeconds: () => Promise<number>;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Rows are stored in a second or three, but wait for up to ten while learners are erased on a busy machine. */
const waitMs = 15_000;
const lookMs = 200;

/**
 * Waits until the answers that were counted before are stored. The time that has gone is taken before Redis is asked: of a
 * reply that takes its time, an answer of just before would seem to have come after the call. @throws ApiError UNAVAILABLE
 */
export async function allStored({ oldestPendingSeconds, now }: StoringPorts): Promise<void> {
  const since = now();
  for (;;) {
    const waited = now() - since;
    if ((await oldestPendingSeconds()) * 1000 <= waited) return;
    if (waited > waitMs) throw unavailable('Answers wait to be stored; try again later');
    await sleep(lookMs);
  }
}
