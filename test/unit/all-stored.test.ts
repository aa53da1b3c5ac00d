import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntilStored } from '../../src/services/outbox/wait-until-stored.js';

test('an answer of just before the call is waited for, however long the store takes to tell of it', async () => {
  let clock = 1000;
  const countedAt = clock - 10;
  let isStored = false;
  let looks = 0;
  const oldestPendingSeconds = async (): Promise<number> => {
    const age = isStored ? 0 : (clock - countedAt) / 1000;
    clock += 150;
    looks += 1;
    isStored = looks >= 2;
    return age;
  };
  await waitUntilStored({ now: () => clock, oldestPendingSeconds });
  assert.ok(isStored, 'it went on while the answer still waited');
});
