import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findIdProblem } from '../../src/contracts/schema/ids.js';
import { ApiError } from '../../src/errors.js';
import { buildPage, decodeIdCursor, encodeIdCursor, sortIdsAfter } from '../../src/services/paging/pages.js';
import { fc, forAll } from '../support/builders/properties.js';

const idLists = fc.uniqueArray(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).filter((text) => findIdProblem(text) === null),
  { maxLength: 60 },
);

test('sortIdsAfter sorts ids by their UTF-8 bytes', () => {
  const sorted = ['10', '9', 'B', 'a', 'b', 'é', '\uffee', '😀'];
  assert.deepEqual(sortIdsAfter(['b', '\uffee', '😀', 'a', 'B', 'é', '10', '9'], null), sorted);
  forAll(idLists, (ids) => {
    const expected = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    assert.deepEqual(sortIdsAfter(ids, null), expected);
  });
});

test('buildPage returns every id once and in order, page by page', () => {
  forAll(idLists, fc.integer({ min: 1, max: 30 }), (ids, limit) => {
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const rest = sortIdsAfter(ids, after);
      const page: ReturnType<typeof buildPage<string>> = buildPage(rest, limit, encodeIdCursor);
      seen.push(...page.items);
      assert.ok(page.items.length <= limit);
      after = page.next_cursor === null ? null : decodeIdCursor(page.next_cursor);
      if (after !== null) assert.equal(after, page.items.at(-1));
    } while (after !== null);
    assert.deepEqual(seen, sortIdsAfter(ids, null));
  });
});

test('buildPage continues after the id of the cursor, also if that id was removed', () => {
  const pageAfter = (id: string) => buildPage(sortIdsAfter(['a', 'c', 'd'], id), 1, encodeIdCursor);
  assert.deepEqual(pageAfter('b').items, ['c']);
  assert.deepEqual(pageAfter('d'), { items: [], next_cursor: null });
});

test('decodeIdCursor throws for a text that encodeIdCursor did not return', () => {
  const cursor = encodeIdCursor('a');
  assert.deepEqual([decodeIdCursor(cursor), decodeIdCursor(undefined)], ['a', null]);
  const encode = (text: string | Buffer) => Buffer.from(text).toString('base64url');
  const ids = ['a', 'after:', 'after:\n', `after:${'x'.repeat(129)}`, Buffer.from('after:\xff', 'latin1')];
  const texts = ['', 'a', 'null', '😀', `${cursor}=`, `${cursor}A`, ` ${cursor}`, cursor.slice(1)];
  for (const text of [...texts, ...ids.map(encode)])
    assert.throws(() => decodeIdCursor(text), ApiError, text);
});
