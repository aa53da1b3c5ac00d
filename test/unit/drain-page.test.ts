import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodePage, parseOutboxEntry, type RowsEntry } from '../../src/store/outbox/outbox-page.js';
import { buildRangeCondition } from '../../src/warehouse/ingest/repair.js';

const field = (name: string, value: string): Buffer[] => [Buffer.from(name), Buffer.from(value)];
const entry = (id: string, rows: string): RowsEntry => parseOutboxEntry([Buffer.from(id), field('r', rows)]);

test('encodePage prefixes each row with its partition and outbox id', () => {
  const page = encodePage(7, [entry('1763705000123-0', 'a\tb\nc'), entry('1763705000123-1', 'ü\t\\N')]);
  const ids = ['7\t1763705000123\t0', '7\t1763705000123\t1', '7\t1763705000123\t65536'];
  assert.equal(page.bytes.toString(), `${ids[0]}\ta\tb\n${ids[1]}\tc\n${ids[2]}\tü\t\\N\n`);
  assert.equal(page.rows, 3);
  const largest = encodePage(65_535, [entry('9999999999999-137438953471', 'a')]);
  assert.equal(largest.bytes.toString(), '65535\t9999999999999\t9007199254675456\ta\n');
});

test('encodePage skips rows by partition and outbox id', () => {
  const page = encodePage(
    7,
    [entry('5-0', 'a\nb\nc'), entry('5-1', 'd'), entry('6-0', 'e')],
    new Set(['7\t5\t1', '7\t5\t65536', '8\t5\t0']),
  );
  assert.equal(page.bytes.toString(), '7\t5\t0\ta\n7\t5\t2\tc\n7\t6\t0\te\n');
  assert.equal(page.rows, 3);
});

test('parseOutboxEntry returns the lines of the field r, or none', () => {
  const lines = (fields: Buffer[]): string[] =>
    parseOutboxEntry([Buffer.from('5-0'), fields]).lines.map((line) => line.toString());
  assert.deepEqual(lines([]), []);
  assert.deepEqual(lines(field('x', 'b')), []);
  assert.deepEqual(lines(field('r', '')), []);
  assert.deepEqual(lines([...field('x', 'y'), ...field('r', 'c')]), ['c']);
  assert.deepEqual(lines(field('r', 'two\nrows')), ['two', 'rows']);
});

test('buildRangeCondition rejects ranges that are no outbox ids', () => {
  const range = { partition: 3, from: '5-1', to: '9-0', rows: 4 };
  const condition = /^outbox_ms BETWEEN 5 AND 9 AND .*BETWEEN \(5, 65536\) AND \(9, 65535\)/;
  assert.match(buildRangeCondition([range]), condition);
  assert.throws(() => buildRangeCondition([{ ...range, from: "5-0') OR 1 --" }]), /not an outbox id/);
});
