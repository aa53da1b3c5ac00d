/** Classes that are read at once are few: each may take tens of megabytes until its answer is sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createLimiter } from '../../src/concurrency.js';
import type { Call } from '../../src/contracts/access/call.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { ApiError } from '../../src/errors.js';
import { readClassMastery } from '../../src/services/classes/read-class-mastery.js';

test('many classes at once wait for their turn, and too many are refused', async () => {
  let [running, most] = [0, 0];
  const packed = async (_: string, userIds: readonly string[]) => {
    running += 1;
    most = Math.max(most, running);
    // Longer than the bodies of all ten take, one in each turn of the event loop.
    for (let turns = 0; turns < 20; turns++) await turn();
    running -= 1;
    return userIds.map(() => ({ bytes: 0, unpack: () => null }));
  };
  const waits = { maxQueuedOfTenant: 5, maxQueueWaitMs: 60_000, rejectionMessage: 'too many' };
  const ports = {
    ...{ learners: { readPacked: packed }, models: { current: async () => unfittedModel }, now: Date.now },
    limit: createLimiter({ maxRunning: 2, maxRunningOfTenant: 2, ...waits }),
  };
  const body = Buffer.from('{"user_ids":["ada"]}');
  const call = { tenant: 'school', body, throwIfDisconnected: () => undefined } as unknown as Call;
  const ask = () => readClassMastery(ports, call);
  const asked = await Promise.allSettled(Array.from({ length: 10 }, ask));
  const refused = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  assert.equal(most, 2);
  assert.deepEqual([asked.length - refused.length, refused.length], [7, 3]);
  assert.ok(refused.every((error) => error instanceof ApiError && error.code === 'UNAVAILABLE'));
});
