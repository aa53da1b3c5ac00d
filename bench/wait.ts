import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '../src/lifecycle.js';

/** @param findMissing null when done, else the message of a StartError after the limit */
export async function untilDone(
  missing: () => Promise<string | null>,
  { limitMs = 120_000, pollMs = 50 } = {},
): Promise<void> {
  const deadline = performance.now() + limitMs;
  for (let left = await missing(); left !== null; left = await missing()) {
    if (performance.now() > deadline) throw new StartError(`${left} within ${limitMs / 1000} s`);
    await sleep(pollMs);
  }
}
