import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNearlyFull } from '../../src/store/redis/server-info.js';

const mb = 2 ** 20;
const infoOf = (used: number, most: number): string =>
  `# Memory\r\nused_memory:${used}\r\nused_memory_rss:1\r\nmaxmemory:${most}\r\nmaxmemory_human:x\r\n`;

test('a Redis without a limit is never full', () => {
  assert.equal(isNearlyFull(infoOf(2 ** 40, 0)), false);
});

test('a twentieth stays free, of a small Redis 8 MB, of a large one 256', () => {
  for (const [most, free] of [
    [64 * mb, 8 * mb],
    [1000 * mb, 50 * mb],
    [100_000 * mb, 256 * mb],
  ] as const) {
    assert.equal(isNearlyFull(infoOf(most - free, most)), false);
    assert.equal(isNearlyFull(infoOf(most - free + 1, most)), true);
  }
});
