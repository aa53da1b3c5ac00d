import { setTimeout as sleep } from 'node:timers/promises';

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
