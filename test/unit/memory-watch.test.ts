import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNearlyFull, parseMemoryUsage, selectFullest } from '../../src/store/redis/server/server-info.js';

const mb = 2 ** 20;
const usage = (used: number, most: number) =>
  parseMemoryUsage(
    `# Memory\r\nused_memory:${used}\r\nused_memory_rss:1\r\nmaxmemory:${most}\r\nmaxmemory_human:x\r\n`,
  );

test('isNearlyFull is true if less than 5 % is free (8 to 256 MB), and false without a limit', () => {
  assert.equal(isNearlyFull(usage(2 ** 40, 0)), false);
  for (const [most, free] of [
    [64 * mb, 8 * mb],
    [1000 * mb, 50 * mb],
    [100_000 * mb, 256 * mb],
  ] as const) {
    assert.equal(isNearlyFull(usage(most - free, most)), false);
    assert.equal(isNearlyFull(usage(most - free + 1, most)), true);
  }
});

test('selectFullest returns the Redis that uses most of its limit, or the largest without limits', () => {
  assert.deepEqual(selectFullest([usage(50, 100), usage(60, 200), usage(10, 0)]), { used: 50, limit: 100 });
  assert.deepEqual(selectFullest([usage(50, 0), usage(60, 0)]), { used: 60, limit: 0 });
});
