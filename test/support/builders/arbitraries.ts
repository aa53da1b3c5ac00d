import fc from 'fast-check';
import { findIdProblem } from '../../../src/contracts/schema/ids.js';
import { type BktParameters, guessSlipMargin } from '../../../src/domain/base/bkt-parameters.js';
import type { Answer, NonEmpty } from '../../../src/domain/base/common.js';

/** Uniform over the range. `fc.double` draws mostly tiny values. */
export const between = (min: number, max: number): fc.Arbitrary<number> =>
  fc.integer({ min: 0, max: 2 ** 30 }).map((step) => min + ((max - min) * step) / 2 ** 30);

/** Lists of all lengths up to a maximum. Without `size`, fast-check prefers short lists. */
export const upTo = <T>(maxLength: number, one: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
  fc.array(one, { maxLength, size: 'max' });

/** Lists of at least one value. */
export const listOf = <T>(one: fc.Arbitrary<T>, maxLength = 4, minLength = 1): fc.Arbitrary<NonEmpty<T>> =>
  fc.array(one, { minLength, maxLength, size: 'max' }).map((list) => list as [T, ...T[]]);

export const ordered = ([a, b]: [number, number]): [number, number] => (a < b ? [a, b] : [b, a]);

/** Reported seconds: short ones, pauses, and missing ones. */
export const reportedSeconds: fc.Arbitrary<number | null> = fc.option(
  fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 86_400 })),
);

/** Reported confidence; null if not sent. */
export const reportedConfidence: fc.Arbitrary<number | null> = fc.option(fc.integer({ min: 1, max: 5 }));

/** Parameters within the bounds of fits and manual settings. */
export const anyParameters: fc.Arbitrary<BktParameters> = fc
  .record({
    pInit: between(0.02, 0.98),
    pLearn: between(0.005, 0.9),
    pGuess: between(0.01, 0.5),
    pSlip: between(0.005, 0.5),
    pForget: between(0, 0.1),
  })
  .filter(({ pGuess, pSlip }) => 1 - pSlip - pGuess >= guessSlipMargin);

export const anyAnswer: fc.Arbitrary<Answer> = fc.record({
  isCorrect: fc.boolean(),
  occurredAt: fc.integer({ min: 0, max: 4e12 }),
  questionDifficulty: fc.option(between(-3, 3)),
  timeSpentSeconds: reportedSeconds,
  confidenceScore: reportedConfidence,
});

/** Valid ids, also with quotes, backslashes and brackets. */
export const anyId: fc.Arbitrary<string> = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 60 })
  .filter((id) => findIdProblem(id) === null);

/** Tolerance for rounding errors of sums and quotients. */
export const rounding = 1e-12;
