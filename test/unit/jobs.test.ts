import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shardCount } from '../../src/contracts/outbox/job-data.js';
import { computeRetryDelay, createSweep, listShardPartitions } from '../../src/jobs/drain-jobs.js';
import { indices } from '../../src/lists.js';
import type { Outbox } from '../../src/store/outbox/outbox.js';

test('computeRetryDelay doubles from 250 ms up to five seconds', () => {
  const delays = [1, 2, 3, 4, 5, 6, 1000, 2 ** 40].map((attempt) => computeRetryDelay(attempt, 0));
  assert.deepEqual(delays, [250, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
  assert.equal(computeRetryDelay(1000, 1), 6000);
});

test('listShardPartitions assigns each partition to one shard', () => {
  for (const partitions of [1, 2, 16, 37]) {
    const owned = Array.from({ length: shardCount }, (_, shard) =>
      listShardPartitions(shard, partitions),
    ).flat();
    owned.sort((a, b) => a - b);
    assert.deepEqual(owned, indices(partitions));
  }
});

test('The sweep drains few rows after one second, many after two, and a large backlog immediately', async () => {
  let rows = 0;
  let armed = 0;
  const readBacklog: Outbox['readBacklog'] = async () => [
    { partition: 0, length: rows, head: '1-0', due: 0 },
  ];
  const sweep = createSweep({ readBacklog }, shardCount, async () => {
    armed++;
  });
  const armedAt = async (at: number, backlog: number): Promise<boolean> => {
    [rows, armed] = [backlog, 0];
    await sweep(at);
    return armed === shardCount;
  };
  assert.equal(await armedAt(0, 1), true);
  assert.deepEqual([await armedAt(800, 1), await armedAt(1000, 1)], [false, true]);
  assert.deepEqual([await armedAt(2900, 5000), await armedAt(3000, 5000)], [false, true]);
  assert.equal(await armedAt(3001, 20_000), true);
  assert.equal(await armedAt(3002, 1), false);
});
