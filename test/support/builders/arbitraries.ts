import fc from 'fast-check';

/** Even over the range, unlike `fc.double`, whose doubles are nearly all tiny. */
export const between = (min: number, max: number): fc.Arbitrary<number> =>
  fc.integer({ min: 0, max: 2 ** 30 }).map((step) => min + ((max - min) * step) / 2 ** 30);

/** Lists of all lengths up to one: without `size`, generated ones stay near the shortest. */
export const upTo = <T>(maxLength: number, one: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
  fc.array(one, { maxLength, size: 'max' });

export const ordered = ([a, b]: [number, number]): [number, number] => (a < b ? [a, b] : [b, a]);

/** Seconds as they are reported: most are short, some mean that the learner was away, some are missing. */
export const reportedSeconds: fc.Arbitrary<number | null> = fc.option(
  fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 86_400 })),
);

/** Confidence as it is reported; null: not sent. */
export const reportedConfidence: fc.Arbitrary<number | null> = fc.option(fc.integer({ min: 1, max: 5 }));

/** For sums and quotients that are monotone but for their rounding. */
export const rounding = 1e-12;
