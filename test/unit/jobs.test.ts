import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drainShards } from '../../src/contracts/jobs.js';
import { partitionsOf, retryDelay } from '../../src/jobs/drain-queue.js';

test('retries back off from a quarter of a second to a cap, however many there were', () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6, 1000, 2 ** 40].map((attempt) => retryDelay(attempt, 0)),
    [250, 500, 1000, 2000, 4000, 5000, 5000, 5000],
  );
  assert.equal(retryDelay(1000, 1), 6000);
});

test('every partition belongs to exactly one shard', () => {
  for (const partitions of [1, 2, 16, 37]) {
    const owned = Array.from({ length: drainShards }, (_, shard) => partitionsOf(shard, partitions)).flat();
    assert.deepEqual(
      owned.sort((a, b) => a - b),
      Array.from({ length: partitions }, (_, i) => i),
    );
  }
});
