import { setTimeout as sleep } from 'node:timers/promises';
import { getCalendar, utc } from '../../../src/domain/base/calendar.js';
import { dayMs } from '../../../src/domain/base/common.js';

/** More than a test takes on a busy machine. */
const enoughMs = 120_000;

/** Waits for the next day of the zone if the current one could end during the test. */
export async function awayFromMidnightIn(timeZone: string): Promise<void> {
  const { startOfDay, toDay } = getCalendar(timeZone);
  const computeRestMs = (): number => startOfDay(toDay(Date.now()) + 1) - Date.now();
  while (computeRestMs() < enoughMs) await sleep(computeRestMs());
}

export const awayFromMidnight = (): Promise<void> => awayFromMidnightIn(utc);

/** An ISO time. Negative days are in the future. */
export const timeAgo = (days: number): string => new Date(Date.now() - days * dayMs).toISOString();
