/** One learner's forecast from the stored records on: the response, and the row that is scored one day. */
import { forecastRow, type ServedForecast } from '../../src/contracts/journal.js';
import { predictionJson, whatIfResult } from '../../src/contracts/prediction.js';
import type { ForecastOptions, WhatIfTask } from '../../src/contracts/tasks.js';
import { noAdviceReason, studyAdvice } from '../../src/domain/advice/study-advice.js';
import { onceFor } from '../../src/domain/base/common.js';
import { goalModel, modelVersion } from '../../src/domain/base/params.js';
import { skillModelOf, type TenantModel } from '../../src/domain/catalogue/tenant-model.js';
import { type SkillView, viewSkill, viewSkills } from '../../src/domain/learner/skill-view.js';
import { type AccuracyModel, intervalReach } from '../../src/domain/prediction/accuracy-model.js';
import { daysUntil } from '../../src/domain/score/goal.js';
import {
  forecastLearner,
  forecastPlan,
  type LearnerForecast,
  standardDays,
} from '../../src/domain/score/learner-forecast.js';
import type { ForecastSubject } from '../../src/domain/score/standing.js';
import { type LearnerState, newSkill, type SkillState } from '../../src/domain/tracing/states.js';
import { decodeGoal } from '../../src/store/learners/goals.js';

export type Tenant = Pick<ForecastSubject, 'model' | 'knownSkills'>;

interface StoredLearner {
  readonly learner: LearnerState;
  readonly skills: Iterable<readonly [skillId: string, state: SkillState]>;
  readonly goalRecord: string | null;
}

export interface Prediction {
  readonly subject: ForecastSubject;
  readonly forecast: LearnerForecast;
}

export function predict(
  found: StoredLearner,
  tenant: Tenant,
  now: number,
  options: ForecastOptions,
): Prediction {
  const subject = subjectOf(found, tenant, now);
  const request = { ...options, goal: decodeGoal(found.goalRecord) };
  return { subject, forecast: forecastLearner(subject, request) };
}

const subjectOf = ({ learner, skills }: StoredLearner, tenant: Tenant, now: number): ForecastSubject => ({
  ...tenant,
  learner,
  views: viewSkills(skills, tenant.model, now),
  now,
});

export function resultJson({ subject, forecast }: Prediction, options: ForecastOptions): string {
  const { measures, neededRate } = forecast;
  const context = { ...subject, measures, goal: { ...forecast.goal, neededRate }, locale: options.locale };
  const advice = studyAdvice(context);
  const reason = advice.length === 0 ? noAdviceReason(context) : null;
  return predictionJson(forecast, advice, reason, options);
}

/** The row of the forecast, to be scored when its days are over. */
export function servedRow(
  tenant: string,
  userId: string,
  { subject, forecast }: Prediction,
  { days, level }: ForecastOptions,
): string {
  const { current, requested, goal, accuracy } = forecast;
  return forecastRow({
    tenant,
    userId,
    madeAt: subject.now,
    days,
    level,
    learnerSeq: subject.learner.attempts,
    current,
    predicted: requested.scores,
    intervals: requested.intervals,
    targetScore: goal.isSet ? goal.targetScore : null,
    goalProbability: goal.isSet ? goal.probability : null,
    modelVersion,
    tenantModelVersion: subject.model.version,
    accuracy: { expected: accuracy.expected, sd: accuracy.sd, ...reachesOf(subject.model.accuracy) },
  });
}

/** How far the intervals reach that are scored: the same in every row of a model. */
const reachesOf = onceFor((model: AccuracyModel): Pick<ServedForecast['accuracy'], 'below' | 'above'> => {
  const reach = (side: 'below' | 'above') => ({
    at50: intervalReach(model, 0.5)[side],
    at80: intervalReach(model, 0.8)[side],
    at95: intervalReach(model, 0.95)[side],
  });
  return { below: reach('below'), above: reach('above') };
});

/**
 * JSON of the forecast under the plan. The target is to be reached within the days asked for, else by the goal's
 * date.
 */
export function planJson(found: StoredLearner, tenant: Tenant, now: number, task: WhatIfTask): string {
  const { level, answersPerDay, skillIds, targetScore, userId } = task;
  const subject = subjectOf(found, tenant, now);
  const views = new Map(subject.views.map((view) => [view.skillId, view]));
  const skills = skillIds?.map((skillId) => views.get(skillId) ?? unseen(skillId, tenant.model, now)) ?? null;
  const plan = { answersPerDay, skills };
  const goal = targetScore === null ? decodeGoal(found.goalRecord) : { targetScore, targetDate: null };
  const asked = { days: task.days ?? standardDays, level };
  const inDays =
    task.days ?? Math.min(daysUntil(goal?.targetDate ?? null, now) ?? standardDays, goalModel.horizonDays);
  const planned = forecastPlan(subject, plan, { ...asked, goal }, inDays);
  return JSON.stringify(whatIfResult(userId, planned, plan, asked));
}

const unseen = (skillId: string, model: TenantModel, now: number): SkillView =>
  viewSkill(skillId, newSkill(skillModelOf(model, skillId).parameters), model, now);
