/** A figure told at some places, and in between on straight lines; constant beyond the first and the last. */
export interface Knot {
  readonly at: number;
  readonly value: number;
}

/** @param knots by `at`, ascending; none: 1 everywhere */
export function valueAt(knots: readonly Knot[], at: number): number {
  const next = knots.findIndex((knot) => knot.at > at);
  const above = knots[next];
  const below = knots[(next < 0 ? knots.length : next) - 1];
  if (above === undefined || below === undefined) return (above ?? below)?.value ?? 1;
  const part = (at - below.at) / (above.at - below.at);
  return below.value + part * (above.value - below.value);
}
