import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../../errors.js';

/** For reads of ClickHouse, where answers arrive a moment after they were counted. */
export interface StoredPorts {
  /** Age of the oldest answer that is not stored yet; null if unknown. */
  readonly sourceLagSeconds: () => Promise<number | null>;
}

export interface StoringPorts {
  /** Age of the oldest answer that is not stored yet; 0 where all are. @throws ApiError UNAVAILABLE */
  readonly oldestPendingSeconds: () => Promise<number>;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Rows are stored within 1 to 3 s, or up to 10 s during erasures on a busy machine. */
const waitMs = 15_000;
const lookMs = 200;

/**
 * Waits until all answers counted before the call are stored. The elapsed time is read before Redis is asked: with a slow reply,
 * an earlier answer would seem to be newer than the call. @throws ApiError UNAVAILABLE
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
