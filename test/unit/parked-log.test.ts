import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { pino } from 'pino';
import { createParkedLog } from '../../src/services/outbox/isolate-rows.js';

test('createParkedLog writes one line per second and partition, with the number of suppressed rows', () => {
  const lines: Record<string, unknown>[] = [];
  const sink = new Writable({
    write: (line, _, done) => {
      lines.push(JSON.parse(String(line)));
      done();
    },
  });
  let now = 0;
  const log = createParkedLog(pino(sink), () => now);
  const row = { partition: 3, id: '5-0', reason: 'CANNOT_PARSE_NUMBER' };
  for (now = 0; now < 1000; now += 10) log(row, 2);
  log(row, 7);
  assert.deepEqual(
    lines.map(({ level, partition, rows, alike }) => [level, partition, rows, alike]),
    [
      [50, 3, 2, 0],
      [50, 3, 7, 198],
    ],
  );
});
