import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../../errors.js';

/** ClickHouse stores answers a moment after they are counted. */
export interface StoredPorts {
  /** Age of the oldest answer that is not stored; null if unknown. */
  readonly sourceLagSeconds: () => Promise<number | null>;
}

export interface StoringPorts {
  /** 0 without pending answers. @throws ApiError UNAVAILABLE */
  readonly oldestPendingSeconds: () => Promise<number>;
  readonly now: () => number;
}

/** Storing takes 1 to 3 s, or 10 s during erasures on a busy machine. */
const waitMs = 15_000;
const lookMs = 200;

/**
 * Waits for answers counted before the call. Reads the clock before Redis: after a slow reply, an earlier
 * answer would seem newer.
 * @throws ApiError UNAVAILABLE
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
