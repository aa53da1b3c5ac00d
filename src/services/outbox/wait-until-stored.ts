import { setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../../errors.js';

export interface SourceLagPorts {
  /** Age of the oldest answer that is not stored; null if unknown. */
  readonly sourceLagSeconds: () => Promise<number | null>;
}

export interface StorageWaitPorts {
  /** 0 without pending answers. @throws ApiError UNAVAILABLE */
  readonly oldestPendingSeconds: () => Promise<number>;
  readonly now: () => number;
}

/** Storing takes 1 to 3 s, or 10 s during erasures on a busy machine. */
const maxWaitMs = 15_000;
const checkIntervalMs = 200;

/**
 * Waits for answers counted before the call. Reads the clock before Redis: otherwise a slow reply lengthens
 * `waited`, and an answer from before the call passes as later.
 * @throws ApiError UNAVAILABLE
 */
export async function waitUntilStored({ oldestPendingSeconds, now }: StorageWaitPorts): Promise<void> {
  const since = now();
  for (;;) {
    const waited = now() - since;
    if ((await oldestPendingSeconds()) * 1000 <= waited) return;
    if (waited > maxWaitMs) throw unavailable('Answers are still waiting for ClickHouse; retry later.');
    await sleep(checkIntervalMs);
  }
}
