/** Pages of ids, and the cursors between them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { learningIdProblem } from '../../src/contracts/ids.js';
import { ApiError } from '../../src/errors.js';
import { idAfter, pageOfIds, sortedAfter } from '../../src/services/read/pages.js';

const ids = fc.uniqueArray(
  fc
    .string({ unit: 'binary', minLength: 1, maxLength: 20 })
    .filter((text) => learningIdProblem(text) === null),
  { maxLength: 60 },
);

test('ids in the order of their UTF-8 bytes', () => {
  assert.deepEqual(sortedAfter(['b', '\uffee', '😀', 'a', 'B', 'é', '10', '9'], null), [
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
      assert.deepEqual(sortedAfter(list, null), expected);
    }),
  );
});

test('pages hold every id once, in order', () => {
  fc.assert(
    fc.property(ids, fc.integer({ min: 1, max: 30 }), (list, limit) => {
      const seen: string[] = [];
      let after: string | null = null;
      do {
        const { ids: page, nextCursor } = pageOfIds(sortedAfter(list, after), limit);
        seen.push(...page);
        assert.ok(page.length <= limit);
        after = nextCursor === null ? null : idAfter(nextCursor);
        if (nextCursor !== null) assert.equal(after, page.at(-1));
      } while (after !== null);
      assert.deepEqual(seen, sortedAfter(list, null));
    }),
  );
});

test('a page goes on behind its cursor, whether that id is still there or not', () => {
  assert.deepEqual(pageOfIds(sortedAfter(['a', 'c', 'd'], 'b'), 1).ids, ['c']);
  assert.deepEqual(pageOfIds(sortedAfter(['a', 'c', 'd'], 'd'), 1), { ids: [], nextCursor: null });
});

test('a text that is no cursor', () => {
  const cursor = pageOfIds(['a', 'b'], 1).nextCursor ?? '';
  assert.equal(idAfter(cursor), 'a');
  assert.equal(idAfter(undefined), null);
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
    assert.throws(() => idAfter(text), ApiError, text);
  }
});
