/** Changes of the share of correct answers between two periods. Not adjusted for the difficulty of the items. */
import { average, clamp } from '../base/common.js';
import { normalQuantile, studentQuantile } from '../base/normal-distribution.js';
import { classConstants } from './class-constants.js';

/** Mean and standard deviation of the changes of learners with answers in both periods. */
export type ChangeSums = Readonly<Record<'learners' | 'mean' | 'sd', number>>;

/** Of one learner. */
export type PeriodSums = Readonly<
  Record<'answers' | 'correct' | 'earlierAnswers' | 'earlierCorrect', number>
>;

const { change, rise } = classConstants;

/** Each learner counts once. Interval: Student's t. @returns null with too few learners */
export function computeChange({ learners, mean, sd }: ChangeSums, level: number = change.level) {
  if (learners < change.minLearners) return null;
  const reach = (studentQuantile((1 + level) / 2, learners - 1) * sd) / Math.sqrt(learners);
  return { mean, low: clamp(mean - reach, -1, 1), high: clamp(mean + reach, -1, 1), learners };
}

/** At the level of other intervals, one skill in ten would rise by chance. @returns 1: rise; -1: fall; 0: not clear */
export function findClearSign(sums: ChangeSums): -1 | 0 | 1 {
  const { low, high } = computeChange(sums, rise.level) ?? { low: 0, high: 0 };
  if (sums.learners < rise.minLearners) return 0;
  return low > 0 ? 1 : high < 0 ? -1 : 0;
}

export function sumChanges(sums: readonly PeriodSums[]): ChangeSums {
  const changes = sums.filter((one) => one.answers > 0 && one.earlierAnswers > 0).map(computeRise);
  const { length: learners } = changes;
  const mean = average(changes, (one) => one);
  const variance = (average(changes, (one) => (one - mean) ** 2) * learners) / (learners - 1);
  return { learners, mean, sd: Math.sqrt(variance) };
}

export const computeRise = ({ answers, correct, earlierAnswers, earlierCorrect }: PeriodSums): number =>
  correct / answers - earlierCorrect / earlierAnswers;

/** Interval for two shares: Agresti & Caffo 2000. */
export function hasClearRise({ answers, correct, earlierAnswers, earlierCorrect }: PeriodSums): boolean {
  if (Math.min(answers, earlierAnswers) < rise.minAnswers) return false;
  const [now, before] = [(correct + 1) / (answers + 2), (earlierCorrect + 1) / (earlierAnswers + 2)];
  const variance = (now * (1 - now)) / (answers + 2) + (before * (1 - before)) / (earlierAnswers + 2);
  return now - before > normalQuantile((1 + rise.level) / 2) * Math.sqrt(variance);
}

/** @param share -1 to 1 */
export const describeChange = (share: number): string =>
  `share of right answers ${share < 0 ? 'down' : 'up'} by ${Math.round(100 * Math.abs(share))} points`;
