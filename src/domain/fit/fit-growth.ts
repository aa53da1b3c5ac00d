import { averageLearning } from '../answer/apply-answer.js';
import {
  type AnswerLog,
  iterateLearnerRanges,
  type LearnerSelection,
  listSkillSets,
} from '../base/answer-log.js';
import type { BktParameters } from '../base/bkt-parameters.js';
import { clamp, mapNonEmpty, type NonEmpty } from '../base/common.js';
import { fitConstants } from '../base/fit-constants.js';
import { projectLearning } from '../base/score-constants.js';
import { combineSkills, newSkillRecord, type SkillRecord } from '../tracing/traces.js';
import { trendConstants } from '../tracing/tracing-constants.js';
import { computeExpectation, newTrend, type Trend, updateTrend } from '../tracing/trend.js';

interface SkillRate {
  readonly parameters: Pick<BktParameters, 'pLearn'>;
}

/** Achieved growth of the learners relative to the projection, 0 to 2; 1 without evidence. */
export function fitGrowth(log: AnswerLog, learners: LearnerSelection, skills: readonly SkillRate[]): number {
  const sets = listSkillSets(log);
  let achieved: number = fitConstants.growthPrior;
  let projected: number = fitConstants.growthPrior;
  for (const { start, end } of iterateLearnerRanges(log, learners)) {
    const trend = replayTrend(log, start, end, sets, skills);
    achieved += trend.achieved;
    projected += trend.projected;
  }
  return clamp(achieved / projected, 0, trendConstants.maxGrowth);
}

function replayTrend(
  log: AnswerLog,
  start: number,
  end: number,
  sets: readonly NonEmpty<number>[],
  skills: readonly SkillRate[],
): Trend {
  const records = new Map<number, SkillRecord>();
  let trend: Trend = newTrend;
  for (let index = start; index < end; index++) {
    const set = sets[log.skill[index] as number] as NonEmpty<number>;
    const right = log.correct[index] as number;
    const asked = mapNonEmpty(set, (skill) => records.get(skill) ?? newSkillRecord);
    const learning = averageLearning(set.map((skill) => skills[skill] as SkillRate));
    const expectation = computeExpectation(combineSkills(asked), 0, projectLearning(learning));
    trend = updateTrend(trend, right === 1, expectation, trend.share, false);
    for (const [i, { trace, attempts, correct }] of asked.entries())
      records.set(set[i] as number, { trace, attempts: attempts + 1, correct: correct + right });
  }
  return trend;
}
