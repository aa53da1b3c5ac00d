/** Pages of ids, and the cursors between them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { findIdProblem } from '../../src/contracts/schema/ids.js';
import { ApiError } from '../../src/errors.js';
import { buildPage, decodeIdCursor, encodeIdCursor, sortIdsAfter } from '../../src/services/paging/pages.js';

const ids = fc.uniqueArray(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).filter((text) => findIdProblem(text) === null),
  { maxLength: 60 },
);

test('ids in the order of their UTF-8 bytes', () => {
  assert.deepEqual(sortIdsAfter(['b', '\uffee', '😀', 'a', 'B', 'é', '10', '9'], null), [
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
      assert.deepEqual(sortIdsAfter(list, null), expected);
    }),
  );
});

test('pages hold every id once, in order', () => {
  fc.assert(
    fc.property(ids, fc.integer({ min: 1, max: 30 }), (list, limit) => {
      const seen: string[] = [];
      let after: string | null = null;
      do {
        const { items, next_cursor }: ReturnType<typeof buildPage<string>> = buildPage(
          sortIdsAfter(list, after),
          limit,
          encodeIdCursor,
        );
        seen.push(...items);
        assert.ok(items.length <= limit);
        after = next_cursor === null ? null : decodeIdCursor(next_cursor);
        if (next_cursor !== null) assert.equal(after, items.at(-1));
      } while (after !== null);
      assert.deepEqual(seen, sortIdsAfter(list, null));
    }),
  );
});

test('a page goes on behind its cursor, whether that id is still there or not', () => {
  const behind = (id: string) => buildPage(sortIdsAfter(['a', 'c', 'd'], id), 1, encodeIdCursor);
  assert.deepEqual(behind('b').items, ['c']);
  assert.deepEqual(behind('d'), { items: [], next_cursor: null });
});

test('a text that is no cursor', () => {
  const cursor = encodeIdCursor('a');
  assert.equal(decodeIdCursor(cursor), 'a');
  assert.equal(decodeIdCursor(undefined), null);
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
    assert.throws(() => decodeIdCursor(text), ApiError, text);
  }
});
