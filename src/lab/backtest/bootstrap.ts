/** Bootstrap over learners: a learner's moments are alike, so that only learners count as independent. */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Sums of one learner's cases, in columns of the caller's choice; the first one is their number. */
export type LearnerSums = Float64Array;

export interface Bounds {
  readonly low: number;
  readonly high: number;
}

export const resamples = 1000;
export const seed = 20_260_101;
const tail = 0.025;

/**
 * 95 % intervals of the means of all columns (sum of the column by sum of the first one) over learners drawn again
 * and again with replacement; the same in every run. Between samples the event loop has its turn, so that signals are
 * served.
 *
 * @param learners at least one
 */
export async function bootstrapMeans(learners: readonly LearnerSums[]): Promise<Bounds[]> {
  const width = (learners[0] as LearnerSums).length;
  const random = generator(seed);
  const means = Array.from({ length: width }, () => new Float64Array(resamples));
  const sums = new Float64Array(width);
  for (let sample = 0; sample < resamples; sample++) {
    await nextTurn();
    drawLearners(learners, random, sums);
    for (const [column, values] of means.entries())
      values[sample] = (sums[column] as number) / (sums[0] as number);
  }
  return means.map(boundsOf);
}

/** @param sums take the sums of as many learners as there are, drawn with replacement */
function drawLearners(learners: readonly LearnerSums[], random: () => number, sums: Float64Array): void {
  sums.fill(0);
  for (let draw = 0; draw < learners.length; draw++) {
    const own = learners[Math.floor(random() * learners.length)] as LearnerSums;
    for (let column = 0; column < sums.length; column++) {
      sums[column] = (sums[column] as number) + (own[column] as number);
    }
  }
}

function boundsOf(values: Float64Array): Bounds {
  const sorted = values.toSorted();
  const at = (share: number): number => sorted[Math.round(share * (sorted.length - 1))] as number;
  return { low: at(tail), high: at(1 - tail) };
}

/** Numbers from 0 to below 1 (mulberry32). */
function generator(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
