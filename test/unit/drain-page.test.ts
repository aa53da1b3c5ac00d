import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodePage } from '../../src/store/outbox-page.js';
import { inRanges } from '../../src/warehouse/repair.js';

const entry = (id: string, row: string): [Buffer, Buffer[]] => [
  Buffer.from(id),
  [Buffer.from('r'), Buffer.from(row)],
];

test('a page is the rows with partition and outbox id in front, one line each', () => {
  const page = encodePage(7, [entry('1763705000123-0', 'a\tb'), entry('1763705000123-1', 'ü\t\\N')]);
  assert.equal(page.bytes.toString(), '7\t1763705000123\t0\ta\tb\n7\t1763705000123\t1\tü\t\\N\n');
  assert.deepEqual([page.rows, page.from, page.to], [2, '1763705000123-0', '1763705000123-1']);
});

test('rows to skip are left out by partition and id', () => {
  const page = encodePage(
    7,
    [entry('5-0', 'a'), entry('5-1', 'b'), entry('6-0', 'c')],
    new Set(['7\t5\t1', '8\t5\t0']),
  );
  assert.equal(page.bytes.toString(), '7\t5\t0\ta\n7\t6\t0\tc\n');
  assert.equal(page.rows, 2);
});

test('an entry without its row is an error, not an empty line', () => {
  assert.throws(() => encodePage(0, [[Buffer.from('5-0'), []]]), /5-0/);
});

test('only numbers of a range reach the SQL', () => {
  assert.match(
    inRanges([{ partition: 3, from: '5-1', to: '9-0', rows: 4 }]),
    /^outbox_ms BETWEEN 5 AND 9 AND /,
  );
  assert.throws(
    () => inRanges([{ partition: 0, from: "5-0') OR 1 --", to: '9-0', rows: 1 }]),
    /not an outbox id/,
  );
});
