/** Pages of ids, and the cursors between them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { learningIdProblem } from '../../src/contracts/ids.js';
import { decodeCursor, pageOfIds, sortIds } from '../../src/services/id-pages.js';

const ids = fc.uniqueArray(
  fc
    .string({ unit: 'binary', minLength: 1, maxLength: 20 })
    .filter((text) => learningIdProblem(text) === null),
  { maxLength: 60 },
);

test('ids in the order of their UTF-8 bytes', () => {
  assert.deepEqual(sortIds(['b', '\uffee', '😀', 'a', 'B', 'é', '10', '9']), [
    '10',
    '9',
    'B',
    'a',
    'b',
    'é',
    '\uffee',
    '😀',
  ]);
  fc.assert(
    fc.property(ids, (list) => {
      const expected = [...list].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      assert.deepEqual(sortIds(list), expected);
    }),
  );
});

test('pages hold every id once, in order', () => {
  fc.assert(
    fc.property(ids, fc.integer({ min: 1, max: 30 }), (list, limit) => {
      const seen: string[] = [];
      let after: string | null = null;
      do {
        const { ids: page, nextCursor } = pageOfIds(list, after, limit);
        seen.push(...page);
        assert.ok(page.length <= limit);
        after = nextCursor === null ? null : decodeCursor(nextCursor);
        if (nextCursor !== null) assert.equal(after, page.at(-1));
      } while (after !== null);
      assert.deepEqual(seen, sortIds(list));
    }),
  );
});

test('a page goes on behind its cursor, whether that id is still there or not', () => {
  assert.deepEqual(pageOfIds(['a', 'c', 'd'], 'b', 1).ids, ['c']);
  assert.deepEqual(pageOfIds(['a', 'c', 'd'], 'd', 1), { ids: [], nextCursor: null });
});

test('a text that is no cursor', () => {
  const cursor = pageOfIds(['a', 'b'], null, 1).nextCursor ?? '';
  assert.equal(decodeCursor(cursor), 'a');
  const encode = (text: string | Buffer) => Buffer.from(text).toString('base64url');
  for (const text of [
    '',
    'a',
    'null',
    `${cursor}=`,
    `${cursor}A`,
    ` ${cursor}`,
    cursor.slice(1),
    encode('a'),
    encode('after:'),
    encode('after:\n'),
    encode(`after:${'x'.repeat(129)}`),
    encode(Buffer.from('after:\xff', 'latin1')),
    '😀',
  ]) {
    assert.equal(decodeCursor(text), null, text);
  }
});
