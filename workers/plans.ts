/** One learner's forecast under a plan of practice. */
import { whatIfResult } from '../src/contracts/prediction.js';
import type { WhatIfTask } from '../src/contracts/tasks.js';
import { daysUntil } from '../src/domain/goal.js';
import { standardDays } from '../src/domain/learner-forecast.js';
import { newSkill } from '../src/domain/mastery.js';
import { goalModel } from '../src/domain/params.js';
import { type SkillView, viewSkill } from '../src/domain/skill-view.js';
import { skillModelOf, type TenantModel } from '../src/domain/tenant-model.js';
import { forecastPlan } from '../src/domain/what-if.js';
import { decodeGoal } from '../src/store/goal-codec.js';
import { type StoredLearner, subjectOf, type Tenant } from './predictions.js';

/**
 * JSON of the forecast under the plan. The target is to be reached within the days that were asked for; without any,
 * by the goal's date where it has one.
 *
 * @param now Unix milliseconds
 */
export function tellPlan(found: StoredLearner, tenant: Tenant, now: number, task: WhatIfTask): string {
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
