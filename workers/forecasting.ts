/** Forecasts of learners as they are stored now. */
import { predictionResult, whatIfResult } from '../src/contracts/prediction.js';
import type {
  ForecastOptions,
  ForecastReply,
  ForecastTask,
  WhatIfReply,
  WhatIfTask,
} from '../src/contracts/tasks.js';
import type { ForecastSubject } from '../src/domain/forecast.js';
import { forecastLearner, type SetGoal } from '../src/domain/learner-forecast.js';
import { newSkill } from '../src/domain/mastery.js';
import { type SkillView, viewSkill, viewSkills } from '../src/domain/skill-view.js';
import { studyAdvice } from '../src/domain/study-advice.js';
import { skillModelOf, type TenantModel } from '../src/domain/tenant-model.js';
import { forecastPlan } from '../src/domain/what-if.js';
import type { ServedModels } from '../src/store/catalogue-cache.js';
import type { RedisClient } from '../src/store/client.js';
import { partitionOf } from '../src/store/keys.js';
import {
  areKnownSkills,
  countKnownSkills,
  readLearners,
  type WholeLearner,
} from '../src/store/learner-store.js';

export interface ForecastParts {
  readonly redis: () => Promise<RedisClient>;
  readonly models: ServedModels;
  readonly partitions: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Who and what a forecast is made of. */
interface Loaded {
  readonly client: RedisClient;
  /** In the order in which they were asked for. */
  readonly learners: readonly (WholeLearner | null)[];
  readonly model: TenantModel;
  readonly knownSkills: number;
}

export function createForecasts(parts: ForecastParts) {
  return {
    predict: async (task: ForecastTask): Promise<ForecastReply> => {
      const loaded = await load(parts, task.tenant, task.userIds);
      const now = parts.now();
      return { data: loaded.learners.map((found) => found && predictLearner(found, loaded, now, task)) };
    },
    whatIf: async (task: WhatIfTask): Promise<WhatIfReply> => {
      const loaded = await load(parts, task.tenant, [task.userId]);
      const [found] = loaded.learners;
      if (!found) return { data: null };
      const unknownSkills = await unknownAmong(loaded, found, task);
      return unknownSkills.length > 0
        ? { unknownSkills }
        : { data: planLearner(found, loaded, parts.now(), task) };
    },
  };
}

async function load(
  { redis, models, partitions }: ForecastParts,
  tenant: string,
  userIds: readonly string[],
): Promise<Loaded> {
  const client = await redis();
  const places = userIds.map((userId) => ({
    partition: partitionOf(tenant, userId, partitions),
    tenant,
    userId,
  }));
  const [learners, knownSkills, model] = await Promise.all([
    readLearners(client, places),
    countKnownSkills(client, tenant),
    models.get(tenant),
  ]);
  return { client, learners, knownSkills, model };
}

/** What belongs to the tenant. */
type Tenant = Pick<Loaded, 'model' | 'knownSkills'>;

const subjectOf = (
  { learner, skills }: Omit<WholeLearner, 'goal'>,
  { model, knownSkills }: Tenant,
  now: number,
): ForecastSubject => ({
  learner,
  views: viewSkills(skills, model, now),
  catalogue: model.catalogue,
  knownSkills,
  now,
});

/** JSON of the prediction result. @param now Unix milliseconds */
export function predictLearner(
  found: Omit<WholeLearner, 'goal'> & { readonly goal: SetGoal | null },
  tenant: Tenant,
  now: number,
  options: ForecastOptions,
): string {
  const subject = subjectOf(found, tenant, now);
  const forecast = forecastLearner(subject, { ...options, goal: found.goal });
  const goal = { ...forecast.goal, neededRate: forecast.neededRate };
  const advice = studyAdvice({ ...subject, model: tenant.model, goal, locale: options.locale });
  return JSON.stringify(predictionResult(forecast, advice, options));
}

/** Those that neither the learner answered, nor anybody of the tenant, nor the tenant set. */
async function unknownAmong(
  { client, model }: Loaded,
  { skills }: WholeLearner,
  { tenant, skillIds }: WhatIfTask,
): Promise<string[]> {
  const open = (skillIds ?? []).filter((skillId) => !skills.has(skillId) && !model.skills.has(skillId));
  if (open.length === 0) return [];
  const known = await areKnownSkills(client, tenant, open);
  return open.filter((_, i) => !known[i]);
}

function planLearner(found: WholeLearner, tenant: Tenant, now: number, task: WhatIfTask): string {
  const { days, level, answersPerDay, skillIds, targetScore, userId } = task;
  const subject = subjectOf(found, tenant, now);
  const views = new Map(subject.views.map((view) => [view.skillId, view]));
  const skills = skillIds?.map((skillId) => views.get(skillId) ?? unseen(skillId, tenant.model, now)) ?? null;
  const plan = { answersPerDay, skills };
  const goal = targetScore === null ? found.goal : { targetScore, targetDate: null };
  return JSON.stringify(whatIfResult(userId, forecastPlan(subject, plan, { days, level, goal }), plan, task));
}

const unseen = (skillId: string, model: TenantModel, now: number): SkillView =>
  viewSkill(skillId, newSkill(skillModelOf(model, skillId).parameters), model, now);
