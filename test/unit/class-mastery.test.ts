import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createLimiter } from '../../src/concurrency.js';
import type { Call } from '../../src/contracts/access/call.js';
import { unfittedModel } from '../../src/domain/catalogue/tenant-model.js';
import { ApiError } from '../../src/errors.js';
import { readClassMastery } from '../../src/services/classes/read-class-mastery.js';

// A class occupies tens of megabytes until its response is sent.
test('readClassMastery reads few classes at a time, queues some and rejects the rest', async () => {
  let [running, most] = [0, 0];
  const readPacked = async (_: string, userIds: readonly string[]) => {
    running += 1;
    most = Math.max(most, running);
    // All ten calls need fewer turns to arrive.
    for (let turns = 0; turns < 20; turns++) await nextTurn();
    running -= 1;
    return userIds.map(() => ({ bytes: 0, unpack: () => null }));
  };
  const queue = { maxQueuedOfTenant: 5, maxQueueWaitMs: 60_000, rejectionMessage: 'too many' };
  const ports = {
    ...{ learners: { readPacked }, models: { current: async () => unfittedModel }, now: Date.now },
    limit: createLimiter({ maxRunning: 2, maxRunningOfTenant: 2, ...queue }),
  };
  const body = Buffer.from('{"user_ids":["ada"]}');
  const call = { tenant: 'school', body, throwIfDisconnected: () => undefined } as unknown as Call;
  const calls = Array.from({ length: 10 }, () => readClassMastery(ports, call));
  const rejected = (await Promise.allSettled(calls)).flatMap((one) =>
    one.status === 'rejected' ? [one.reason] : [],
  );
  assert.deepEqual([most, rejected.length], [2, 3]);
  assert.ok(rejected.every((error) => error instanceof ApiError && error.code === 'UNAVAILABLE'));
});
