import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseIfMatch, toEtagHeader } from '../../src/contracts/schema/preconditions.js';
import { ApiError } from '../../src/errors.js';

test('what If-Match may say', () => {
  assert.equal(parseIfMatch(null), null);
  for (const any of ['*', ' * ']) assert.equal(parseIfMatch(any), '*');
  const lists: readonly (readonly [string, readonly string[]])[] = [
    ['"7"', ['7']],
    ['""', ['']],
    ['"a","b" , "c"', ['a', 'b', 'c']],
    ['"a,b", "c"', ['a,b', 'c']],
    [', "a",, "b",', ['a', 'b']],
    ['W/"a", "b"', ['b']],
    ['W/"a"', []],
    ['"a\\b"', ['a\\b']],
  ];
  for (const [header, tags] of lists) assert.deepEqual(parseIfMatch(header), tags, header);
});

test('what it may not', () => {
  for (const header of [
    '',
    ' ',
    ',',
    'a',
    '"a',
    'a"',
    '"a" "b"',
    '"a"b',
    'w/"a"',
    '*, "a"',
    '"a b"',
    "'a'",
  ]) {
    assert.throws(
      () => parseIfMatch(header),
      (error) => error instanceof ApiError && error.code === 'INVALID_REQUEST',
      header,
    );
  }
});

test('a tag that was given comes back', () => {
  const tag = fc.string({ unit: fc.constantFrom(...'abcXYZ019!#,;*/\\-') });
  fc.assert(
    fc.property(fc.array(tag, { minLength: 1, maxLength: 5 }), (tags) => {
      const header = tags.map((one) => toEtagHeader(one).ETag).join(', ');
      assert.deepEqual(parseIfMatch(header), tags);
    }),
  );
});
