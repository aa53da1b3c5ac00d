import { normalCdf } from '../../../src/domain/base/normal-distribution.js';
import { computeSum, indices } from '../../../src/lists.js';

type TimedSums = ReturnType<typeof timedSums>;

export function timedSums(answers: readonly { readonly correct: boolean; readonly seconds: number }[]) {
  const logs = answers.map(({ seconds }) => Math.log(seconds));
  return {
    timed: answers.length,
    timedCorrect: answers.filter(({ correct }) => correct).length,
    logSeconds: computeSum(logs),
    logSecondsSquared: computeSum(logs.map((log) => log ** 2)),
  };
}

/** Answers that the prior stands for: half of them one standard deviation faster than 75 s, half as much slower. */
const { timed, timedCorrect, logSeconds, logSecondsSquared } = timedSums(
  indices(20).map((i) => ({ correct: i < 15, seconds: 75 * Math.exp(i % 2 === 0 ? 0.6 : -0.6) })),
);

/** Corrected for guessing with a chance of 1 in 5. */
const corrected = (share: number): number => Math.max(0, (5 * share - 1) / 4);

/** The efficiency index of the views. @param own of a learner or a cohort @param all of the skill */
export function viewEfficiency(own: Omit<TimedSums, 'logSecondsSquared'>, all: TimedSums): number | null {
  if (own.timed < 3) return null;
  const answers = timed + all.timed;
  const logMean = (logSeconds + all.logSeconds) / answers;
  const variance = (logSecondsSquared + all.logSecondsSquared) / answers - logMean ** 2;
  const slowness = (own.logSeconds / own.timed - logMean) / Math.sqrt(Math.max(variance, 0.04));
  const known = corrected(own.timedCorrect / own.timed);
  const ahead = known - corrected((timedCorrect + all.timedCorrect) / answers);
  const time = 0.6 * known * Math.min(1.5, Math.max(-1.5, slowness));
  return 100 * normalCdf((2 * ahead - time) / Math.sqrt(1.36));
}
