import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntilStored } from '../../src/services/outbox/wait-until-stored.js';

test('waitUntilStored waits for an answer that was counted just before the call', async () => {
  let clock = 1000;
  const countedAt = clock - 10;
  let reads = 0;
  const oldestPendingSeconds = async (): Promise<number> => {
    const age = reads >= 2 ? 0 : (clock - countedAt) / 1000;
    // A slow store: the age that it returns is older than the clock afterwards.
    clock += 150;
    reads += 1;
    return age;
  };
  await waitUntilStored({ now: () => clock, oldestPendingSeconds });
  assert.ok(reads >= 2, 'the answer was still pending');
});
