/** A range of skills or learners: from the first to below the second. */
export type Range = readonly [from: number, to: number];

/** Ranges for each thread: several, because skills and learners differ in size. */
const rangesPerThread = 4;

/**
 * All members of a column in ranges of about the same size, for so many threads; one range for one thread.
 *
 * @param starts where each member begins, and the end
 */
export function splitEvenly(starts: Uint32Array, threads: number): Range[] {
  const members = starts.length - 1;
  const parts = threads === 1 ? 1 : threads * rangesPerThread;
  const share = Math.max(1, (starts[members] as number) / parts);
  const ranges: Range[] = [];
  let from = 0;
  for (let to = 1; to <= members; to++) {
    if ((starts[to] as number) - (starts[from] as number) < share && to < members) continue;
    ranges.push([from, to]);
    from = to;
  }
  return ranges;
}
