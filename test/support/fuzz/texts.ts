/** Texts as they come: plain ones, odd ones that are allowed, and some that are not. */
import fc from 'fast-check';

/** Names that a program might trip over: all are ids as good as any. */
const oddIds = [
  '__proto__',
  'constructor',
  'hasOwnProperty',
  'toString',
  '..',
  '.',
  '%',
  '%2e%2e',
  'a/b',
  'a?b',
  'a#b',
  'a;b',
  'a b',
  'a:b',
  '{p1}',
  "a'b\\t",
  '\\N',
  'é',
  'e\u0301',
  '日本語',
  '👩‍🎓',
  'аdmin',
  'a\u200bb',
  '\u202eabc',
  '\ufeffid',
  '"',
  '-1',
  'null',
  '0',
];

/** Few, so that requests meet. */
const plainIds = ['ada', 'ben', 'cleo', 'algebra', 'inference', 'u-1', 'u-2', 'u-3'];

export const goodId: fc.Arbitrary<string> = fc.oneof(
  { weight: 60, arbitrary: fc.constantFrom(...plainIds) },
  { weight: 20, arbitrary: fc.constantFrom(...oddIds) },
  { weight: 1, arbitrary: fc.stringMatching(/^[\x20-\x7e]{1,128}$/) },
  { weight: 1, arbitrary: fc.constantFrom('x'.repeat(128), '😀'.repeat(128)) },
);

/** Two that meet again and again; and more, for one that was taken back stays taken. */
export const eventId: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('e-1', 'e-2'),
  fc.integer({ min: 3, max: 300 }).map((number) => `e-${number}`),
);

/** No ids, but strings. */
export const badId: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    '',
    'x'.repeat(129),
    'a\0b',
    'a\nb',
    '\u007f',
    '\u0085',
    '\ud800',
    'a\udc00',
    'x'.repeat(5000),
  ),
  fc.string({ unit: 'binary', maxLength: 200 }),
);

/** What has no meaning where it stands. */
export const junk: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, true, false, 0, -1, 1e308, -0, '', [], {}, [[]], 'NaN', 1e21, 0.1),
  fc.jsonValue({ maxDepth: 3 }),
  badId,
);

const badSegments = [
  '%',
  '%2',
  '%zz',
  '%c0%af',
  '%ed%a0%80',
  '%ff',
  '%00',
  '%0d%0a',
  '%252e',
  '..',
  '.',
  '',
  '%2e%2e',
  '%2F',
  '%2f..%2f',
  ';a=b',
  '*',
  'x'.repeat(1500),
  '+',
];

/** One segment of a path, as it is sent. */
export const segment: fc.Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: goodId.map(encodeURIComponent) },
  { weight: 1, arbitrary: fc.constantFrom(...badSegments) },
  { weight: 1, arbitrary: fc.stringMatching(/^[!$&'()*+,;=:@A-Za-z0-9._~%-]{0,30}$/) },
);
