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

test('what holds no row is told by its id and makes no line', () => {
  const field = (name: string, value: string): Buffer[] => [Buffer.from(name), Buffer.from(value)];
  const page = encodePage(7, [
    [Buffer.from('5-0'), []],
    entry('5-1', 'a'),
    [Buffer.from('5-2'), field('x', 'b')],
    entry('5-3', ''),
    entry('5-4', 'two\nlines'),
    [Buffer.from('5-5'), [...field('x', 'y'), ...field('r', 'c')]],
  ]);
  assert.equal(page.bytes.toString(), '7\t5\t1\ta\n7\t5\t5\tc\n');
  assert.deepEqual([page.rows, page.unreadable], [2, ['5-0', '5-2', '5-3', '5-4']]);
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
