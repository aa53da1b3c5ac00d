import { type AnswerLog, iterateLearnerRanges, type LearnerSelection } from '../base/answer-log.js';
import type { BktParameters } from '../base/bkt-parameters.js';
import { clamp } from '../base/common.js';
import { fitConstants } from '../base/fit-constants.js';
import { projectLearning } from '../base/score-constants.js';
import { trendConstants } from '../tracing/tracing-constants.js';
import { computeExpectation, newTrend, type Trend, updateTrend } from '../tracing/trend.js';

/** Achieved growth of the learners relative to the projection, 0 to 2; 1 without evidence. */
export function fitGrowth(
  log: AnswerLog,
  learners: LearnerSelection,
  parameters: readonly Pick<BktParameters, 'pLearn'>[],
): number {
  const learning = parameters.map(({ pLearn }) => projectLearning(pLearn));
  let achieved: number = fitConstants.growthPrior;
  let projected: number = fitConstants.growthPrior;
  for (const { start, end } of iterateLearnerRanges(log, learners)) {
    const trend = replayTrend(log, start, end, learning);
    achieved += trend.achieved;
    projected += trend.projected;
  }
  return clamp(achieved / projected, 0, trendConstants.maxGrowth);
}

function replayTrend(log: AnswerLog, start: number, end: number, learning: readonly number[]): Trend {
  const counts = new Map<number, { readonly attempts: number; readonly correct: number }>();
  let trend: Trend = newTrend;
  for (let index = start; index < end; index++) {
    const skill = log.skill[index] as number;
    const right = log.correct[index] as number;
    const count = counts.get(skill) ?? { attempts: 0, correct: 0 };
    const expectation = computeExpectation(count, 0, learning[skill] as number);
    trend = updateTrend(trend, right === 1, expectation, trend.share, false);
    counts.set(skill, { attempts: count.attempts + 1, correct: count.correct + right });
  }
  return trend;
}
