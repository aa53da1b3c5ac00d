import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNearlyFull, parseMemoryUsage, selectFullest } from '../../src/store/redis/server/server-info.js';

const mb = 2 ** 20;
const told = (used: number, most: number) =>
  parseMemoryUsage(
    `# Memory\r\nused_memory:${used}\r\nused_memory_rss:1\r\nmaxmemory:${most}\r\nmaxmemory_human:x\r\n`,
  );

test('a Redis without a limit is never full', () => {
  assert.equal(isNearlyFull(told(2 ** 40, 0)), false);
});

test('a twentieth stays free, of a small Redis 8 MB, of a large one 256', () => {
  for (const [most, free] of [
    [64 * mb, 8 * mb],
    [1000 * mb, 50 * mb],
    [100_000 * mb, 256 * mb],
  ] as const) {
    assert.equal(isNearlyFull(told(most - free, most)), false);
    assert.equal(isNearlyFull(told(most - free + 1, most)), true);
  }
});

test('of several the one that uses most of its limit is told of, without limits the largest', () => {
  assert.deepEqual(selectFullest([told(50, 100), told(60, 200), told(10, 0)]), { used: 50, limit: 100 });
  assert.deepEqual(selectFullest([told(50, 0), told(60, 0)]), { used: 60, limit: 0 });
});
