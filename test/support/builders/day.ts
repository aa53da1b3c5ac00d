import { setTimeout as sleep } from 'node:timers/promises';
import { dayMs } from '../../../src/domain/base/common.js';

/** More than a test takes on a busy machine. */
const enoughMs = 120_000;

const computeRestOfDayMs = (): number => dayMs - (Date.now() % dayMs);

/** Waits for the next UTC day if the current one could end during the test. */
export async function awayFromMidnight(): Promise<void> {
  while (computeRestOfDayMs() < enoughMs) await sleep(computeRestOfDayMs());
}

/** An ISO time. Negative days are in the future. */
export const timeAgo = (days: number): string => new Date(Date.now() - days * dayMs).toISOString();
