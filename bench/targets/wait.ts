import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '../../src/lifecycle.js';

/** @param findMissing null when done, else the message of a StartError after the limit */
export async function waitUntilDone(
  findMissing: () => Promise<string | null>,
  { limitMs = 120_000, pollMs = 50 } = {},
): Promise<void> {
  const deadline = performance.now() + limitMs;
  for (let left = await findMissing(); left !== null; left = await findMissing()) {
    if (performance.now() > deadline) throw new StartError(`${left} after ${limitMs / 1000} s`);
    await sleep(pollMs);
  }
}
