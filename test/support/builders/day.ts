import { setTimeout as sleep } from 'node:timers/promises';

const dayMs = 86_400_000;
/** More than a test on days takes on a busy machine. */
const enoughMs = 120_000;

const leftOfDayMs = (): number => dayMs - (Date.now() % dayMs);

/** Waits for the next UTC day where so little is left of this one that it could change in the middle of a test. */
export async function awayFromMidnight(): Promise<void> {
  while (leftOfDayMs() < enoughMs) await sleep(leftOfDayMs());
}
