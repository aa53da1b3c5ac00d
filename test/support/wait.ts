import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Polls until `condition` holds.
 *
 * @param limitMs when to give up; generous, it only bounds a failing test
 * @returns the milliseconds it took
 */
export async function waitFor(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 15_000,
): Promise<number> {
  const since = performance.now();
  while (!(await condition())) {
    if (performance.now() - since > limitMs) throw new Error(`${what}: not within ${limitMs} ms`);
    await sleep(20);
  }
  return performance.now() - since;
}
