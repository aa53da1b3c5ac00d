/** What the forecast is measured against. */
import type { AnswerLog } from '../../domain/base/answer-log.js';

export interface BaselineShares {
  readonly no_change: number;
  readonly population: number;
}

/** Answers that the learner's latest share is taken of. */
const latest = 50;
/** Added to the right and to the wrong ones: else a share of 0 or 1 would be certain. */
const smoothing = 1;

/**
 * The learner's own latest share of right answers, and the share in the training log.
 *
 * @returns both at a place of the test log, from the learner's answers before it
 */
export function baselineShares(training: AnswerLog, test: AnswerLog): (place: number) => BaselineShares {
  const population = training.correct.reduce((sum, value) => sum + value, 0) / training.correct.length;
  const learnerStart = startsByPlace(test);
  return (place) => {
    const from = Math.max(learnerStart[place] as number, place - latest);
    const right = test.correct.subarray(from, place).reduce((sum, value) => sum + value, 0);
    return { no_change: (right + smoothing) / (place - from + 2 * smoothing), population };
  };
}

function startsByPlace({ starts, correct }: AnswerLog): Uint32Array {
  const column = new Uint32Array(correct.length);
  for (let learner = 0; learner + 1 < starts.length; learner++) {
    const start = starts[learner] as number;
    column.fill(start, start, starts[learner + 1]);
  }
  return column;
}
