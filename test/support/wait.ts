import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClient } from '../../src/store/redis/connection/client.js';

/** Looks cost the processor that what is waited for needs, so they get rarer while it takes long. */
const [shortestMs, longestMs, share] = [20, 100, 0.05];

/**
 * Polls until `condition` holds.
 *
 * @param limitMs when to give up; generous, it only bounds a failing test
 * @returns the milliseconds it took
 */
export async function waitFor(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 180_000,
): Promise<number> {
  const since = performance.now();
  while (!(await condition())) {
    const passed = performance.now() - since;
    if (passed > limitMs) throw new Error(`${what}: not within ${limitMs} ms`);
    await sleep(Math.max(shortestMs, Math.min(longestMs, share * passed)));
  }
  return performance.now() - since;
}

/** Waits until nothing is left in a stream. */
export const emptied = (redis: Pick<RedisClient, 'xlen'>, key: string): Promise<number> =>
  waitFor(`an empty ${key}`, async () => (await redis.xlen(key)) === 0);

/** Asks again until the answer is as wanted, and gives it. */
export async function askUntil<Told>(
  what: string,
  ask: () => Promise<Told>,
  wanted: (told: Told) => boolean,
): Promise<Told> {
  let told: Told | undefined;
  await waitFor(what, async () => {
    told = await ask();
    return wanted(told);
  });
  return told as Told;
}
