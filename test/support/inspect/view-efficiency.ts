import { normalCdf } from '../../../src/domain/base/normal-distribution.js';
import { computeSum, indices } from '../../../src/lists.js';

interface TimedAnswer {
  readonly is_correct: boolean;
  readonly time_spent_seconds: number;
}

function sumUp(answers: readonly TimedAnswer[]) {
  const logs = answers.map(({ time_spent_seconds }) => Math.log(time_spent_seconds));
  const count = answers.length;
  const correct = answers.filter(({ is_correct }) => is_correct).length;
  const logMean = computeSum(logs) / count;
  return {
    share: correct / count,
    logMean,
    logVariance: computeSum(logs.map((log) => log ** 2)) / count - logMean ** 2,
  };
}

/** Answers that the prior stands for: half of them one standard deviation faster than 75 s, half as much slower. */
const prior: readonly TimedAnswer[] = indices(20).map((i) => ({
  ...{ is_correct: i < 15, time_spent_seconds: 75 * Math.exp(i % 2 === 0 ? 0.6 : -0.6) },
}));

/** Corrected for guessing with a chance of 1 in 5. */
const corrected = (share: number): number => Math.max(0, (5 * share - 1) / 4);

/** The efficiency index of the views. @param own answers of a learner or a cohort @param all answers on the skill */
export function viewEfficiency(own: readonly TimedAnswer[], all: readonly TimedAnswer[]): number {
  const { share, logMean } = sumUp(own);
  const usual = sumUp([...prior, ...all]);
  const slowness = (logMean - usual.logMean) / Math.sqrt(Math.max(usual.logVariance, 0.04));
  const known = corrected(share);
  const time = 0.6 * known * Math.min(1.5, Math.max(-1.5, slowness));
  return 100 * normalCdf((2 * (known - corrected(usual.share)) - time) / Math.sqrt(1.36));
}
