import assert from 'node:assert/strict';

/** Fails if the values differ by more than the tolerance (by default for means of 4 decimals), or if one is missing. */
export const assertNear = (
  actual: number | undefined,
  expected: number | undefined,
  tolerance = 2e-4,
  message = '',
): void =>
  assert.ok(
    Math.abs((actual ?? Number.NaN) - (expected ?? Number.NaN)) <= tolerance,
    `${message}: ${actual} instead of ${expected}`,
  );
