/** Arbitraries of ids, of other values and of path segments, valid and invalid. */
import fc from 'fast-check';

/** `usual` is drawn `weight` times as often as `odd`. */
export const mostly = <Value>(weight: number, usual: fc.Arbitrary<Value>, odd: fc.Arbitrary<Value>) =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: odd });

/** Few, so that many requests use the same learner or skill. */
const plainIds = ['ada', 'ben', 'cleo', 'algebra', 'inference', 'u-1', 'u-2', 'u-3'];

const oddIds = [
  ...['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'null', '-1', '0'],
  ...['...', '%', '%2e%2e', 'a/b', 'a?b', 'a#b', 'a;b', 'a b', 'a:b', '{p1}', "a'b\\t", '\\N', '"'],
  ...['é', 'e\u0301', '日本語', '👩‍🎓', 'аdmin', 'a\u200bb', '\u202eabc', '\ufeffid'],
];

const invalidIds = [
  ...['', '.', '..', 'x'.repeat(129), 'x'.repeat(5000)],
  ...['a\0b', 'a\nb', '\u007f', '\u0085', '\ud800', 'a\udc00'],
];

const oddSegments = [
  ...['%', '%2', '%zz', '%c0%af', '%ed%a0%80', '%ff', '%00', '%0d%0a', '%252e', '%2e%2e', '%2F', '%2f..%2f'],
  ...['..', '.', '', ';a=b', '*', '+', 'x'.repeat(1500)],
];

export const validId: fc.Arbitrary<string> = fc.oneof(
  { weight: 60, arbitrary: fc.constantFrom(...plainIds) },
  { weight: 20, arbitrary: fc.constantFrom(...oddIds) },
  { weight: 1, arbitrary: fc.stringMatching(/^[\x20-\x7e]{1,128}$/) },
  { weight: 1, arbitrary: fc.constantFrom('x'.repeat(128), '😀'.repeat(128)) },
);

/** Two ids that are repeated often, and others: the id of a retracted answer stays in use. */
export const eventId: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('e-1', 'e-2'),
  fc.integer({ min: 3, max: 300 }).map((number) => `e-${number}`),
);

export const invalidId: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...invalidIds),
  fc.string({ unit: 'binary', maxLength: 200 }),
);

export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, true, false, 0, -1, 1e308, -0, '', [], {}, [[]], 'NaN', 1e21, 0.1),
  fc.jsonValue({ maxDepth: 3 }),
  invalidId,
);

/** Percent-encoded, as it is sent. */
export const pathSegment: fc.Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: validId.map(encodeURIComponent) },
  { weight: 1, arbitrary: fc.constantFrom(...oddSegments) },
  { weight: 1, arbitrary: fc.stringMatching(/^[!$&'()*+,;=:@A-Za-z0-9._~%-]{0,30}$/) },
);
