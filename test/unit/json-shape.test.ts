import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkJsonShape, checkUniqueNames } from '../../src/contracts/schema/json.js';
import { fc, forAll } from '../support/builders/properties.js';

const padding = ' '.repeat(20_000);
const problemOf = (text: string, maxValues = 1000, byLine = false): string | null => {
  try {
    checkJsonShape(Buffer.from(padding + text), maxValues, byLine);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
};

/** Values in lists and objects, and the depth of their nesting. */
function shapeOf(value: unknown): { values: number; depth: number } {
  if (typeof value !== 'object' || value === null) return { values: 0, depth: 0 };
  const parts = Object.values(value).map(shapeOf);
  const separators = Math.max(0, parts.length - 1);
  return {
    values: 1 + separators + parts.reduce((sum, { values }) => sum + values, 0),
    depth: 1 + Math.max(0, ...parts.map(({ depth }) => depth)),
  };
}

test('checkJsonShape counts the values that a parser would create, and nothing inside strings', () => {
  const json = fc.json({ maxDepth: 6, stringUnit: 'binary' });
  const tricky = fc.array(fc.stringMatching(/^[{}[\],"\\\\a]*$/)).map((list) => JSON.stringify(list));
  forAll(fc.oneof(json, tricky), fc.boolean(), (text, byLine) => {
    const { values } = shapeOf(JSON.parse(text));
    assert.equal(problemOf(text, values, byLine), null, text);
    if (values > 0) assert.match(problemOf(text, values - 1, byLine) ?? '', /values/, text);
  });
});

test('checkJsonShape limits the nesting to 32 levels, separately for each line of NDJSON', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  assert.equal(problemOf(nested(32)), null);
  assert.match(problemOf(nested(33)) ?? '', /deeper than 32 levels/);
  const torn = '{"a":["b\n'.repeat(100);
  assert.match(problemOf(torn) ?? '', /deeper/);
  assert.equal(problemOf(torn, 1000, true), null);
});

test('checkJsonShape skips bodies below the size threshold', () => {
  assert.doesNotThrow(() => checkJsonShape(Buffer.from('['.repeat(10_000)), 1, false));
});

const checkNames = (text: string): unknown => [...checkUniqueNames(Buffer.from(text))];

test('checkUniqueNames accepts every text of JSON.stringify', () => {
  forAll(fc.json({ maxDepth: 6, stringUnit: 'binary' }), (text) =>
    assert.doesNotThrow(() => checkNames(text)),
  );
});

test('checkUniqueNames finds a repeated name at any depth and in any spelling', () => {
  const repeated = [
    ['{"a":1,"a":1}', 'a'],
    ['{"a":{"b":[[{"c":1,"d":{"c":2},"c":3}]]}}', 'c'],
    ['{"a":{"a":1},"b":["a","a"],"a":2}', 'a'],
    ['[{"a" \n:1 ,\t"\\u0061"\r:2}]', 'a'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"":1,"":2}', ''],
    ['{"\\"{":1,"\\u0022{":2}', '"{'],
    ['{"é":1,"\\u00e9":2}', 'é'],
    [`{"${'x'.repeat(5000)}":1,"${'x'.repeat(5000)}":2}`, 'x'.repeat(100)],
  ] as const;
  for (const [text, path] of repeated)
    assert.throws(() => checkNames(text), {
      code: 'INVALID_REQUEST',
      details: [{ path, message: 'must not be repeated in its object' }],
    });
  const unique = [
    '{"a":{"a":{"a":1}}}',
    '[{"a":1},{"a":2}]',
    '{"a":"b","b":"a:","A":{}}',
    '{"a":"{\\"a\\":1"}',
  ];
  for (const text of unique) assert.doesNotThrow(() => checkNames(text), text);
});
