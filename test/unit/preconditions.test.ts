import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseIfMatch, toEtagHeader } from '../../src/contracts/schema/preconditions.js';
import { fc, forAll } from '../support/builders/properties.js';

test('parseIfMatch returns the strong tags of a list, * and null', () => {
  assert.equal(parseIfMatch(null), null);
  for (const any of ['*', ' * ']) assert.equal(parseIfMatch(any), '*');
  const lists: Record<string, readonly string[]> = {
    '"7"': ['7'],
    '""': [''],
    '"a","b" , "c"': ['a', 'b', 'c'],
    '"a,b", "c"': ['a,b', 'c'],
    ', "a",, "b",': ['a', 'b'],
    'W/"a", "b"': ['b'],
    'W/"a"': [],
    '"a\\b"': ['a\\b'],
  };
  for (const [header, tags] of Object.entries(lists)) assert.deepEqual(parseIfMatch(header), tags, header);
});

test('parseIfMatch rejects a malformed list', () => {
  const malformed = ['', ' ', ',', 'a', '"a', 'a"', '"a" "b"', '"a"b', 'w/"a"', '*, "a"', '"a b"', "'a'"];
  for (const header of malformed)
    assert.throws(() => parseIfMatch(header), { code: 'INVALID_REQUEST' }, header);
});

test('parseIfMatch returns the tags of ETag headers', () => {
  const tag = fc.string({ unit: fc.constantFrom(...'abcXYZ019!#,;*/\\-') });
  forAll(fc.array(tag, { minLength: 1, maxLength: 5 }), (tags) => {
    const header = tags.map((one) => toEtagHeader(one).ETag).join(', ');
    assert.deepEqual(parseIfMatch(header), tags);
  });
});
