/** Forecasts of learners as they are stored now. */
import { forecastRow, type ServedForecast } from '../src/contracts/journal.js';
import { predictionResult, whatIfResult } from '../src/contracts/prediction.js';
import type {
  ForecastOptions,
  ForecastReply,
  ForecastTask,
  WhatIfReply,
  WhatIfTask,
  WorkerSettings,
} from '../src/contracts/tasks.js';
import { type AccuracyModel, intervalReach } from '../src/domain/accuracy/model.js';
import type { ForecastSubject } from '../src/domain/forecast.js';
import { daysUntil } from '../src/domain/goal.js';
import { forecastLearner, type LearnerForecast, standardDays } from '../src/domain/learner-forecast.js';
import { newSkill } from '../src/domain/mastery.js';
import { goalModel, modelVersion } from '../src/domain/params.js';
import { type SkillView, viewSkill, viewSkills } from '../src/domain/skill-view.js';
import { studyAdvice } from '../src/domain/study-advice.js';
import { skillModelOf, type TenantModel } from '../src/domain/tenant-model.js';
import { forecastPlan } from '../src/domain/what-if.js';
import type { ServedModels } from '../src/store/catalogue-cache.js';
import type { RedisClient } from '../src/store/client.js';
import { decodeGoal } from '../src/store/goal-codec.js';
import { noteForecasts } from '../src/store/journal.js';
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
  readonly settings: Pick<WorkerSettings, 'partitions' | 'forecastsBound'>;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Hears how many served forecasts were not noted, and why where Redis did not take them. */
  readonly onLost: (forecasts: number, error: unknown) => void;
}

/** What forecasts of a tenant's learners have in common. */
interface Tenant {
  /** With the catalogue. */
  readonly model: TenantModel;
  /** Number of different skills that the tenant set or its learners answered. */
  readonly knownSkills: number;
}

interface Loaded extends Tenant {
  readonly client: RedisClient;
  /** In the order in which they were asked for. */
  readonly learners: readonly (WholeLearner | null)[];
}

export function createForecasts(parts: ForecastParts) {
  const { now } = parts;
  return {
    predict: async (task: ForecastTask): Promise<ForecastReply> => {
      const { client, learners, ...tenant } = await load(parts, task.tenant, task.userIds);
      const predictions = learners.map((found) => found && predict(found, tenant, now(), task));
      const rows = predictions.flatMap((made, i) =>
        made === null ? [] : [servedRow(task.tenant, task.userIds[i] as string, made, tenant.model, task)],
      );
      // Nobody waits for it: a forecast that is not noted is not scored one day, and told all the same.
      void note(parts, client, task, rows);
      return { data: predictions.map((made) => made && toldResult(made, tenant.model, task)) };
    },
    whatIf: async (task: WhatIfTask): Promise<WhatIfReply> => {
      const { client, learners, ...tenant } = await load(parts, task.tenant, [task.userId]);
      const [found] = learners;
      if (!found) return { data: null };
      const unknownSkills = await unknownAmong(client, tenant.model, found, task);
      return unknownSkills.length > 0 ? { unknownSkills } : { data: tellPlan(found, tenant, now(), task) };
    },
  };
}

async function load(
  { redis, models, settings }: ForecastParts,
  tenant: string,
  userIds: readonly string[],
): Promise<Loaded> {
  const client = await redis();
  const places = userIds.map((userId) => ({
    partition: partitionOf(tenant, userId, settings.partitions),
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

/** A class is noted as one, with its first learner: rows say whose they are. */
async function note(
  { settings, onLost }: ForecastParts,
  client: RedisClient,
  { tenant, userIds }: ForecastTask,
  rows: readonly string[],
): Promise<void> {
  const partition = partitionOf(tenant, userIds[0] as string, settings.partitions);
  await noteForecasts(client, partition, rows, settings.forecastsBound, onLost);
}

interface Prediction {
  readonly subject: ForecastSubject;
  readonly forecast: LearnerForecast;
}

/** @param now Unix milliseconds */
export function predict(
  found: WholeLearner,
  tenant: Tenant,
  now: number,
  options: ForecastOptions,
): Prediction {
  const subject = subjectOf(found, tenant, now);
  const request = { ...options, goal: decodeGoal(found.goalRecord) };
  return { subject, forecast: forecastLearner(subject, tenant.model.accuracy, request) };
}

const subjectOf = (
  { learner, skills }: WholeLearner,
  { model, knownSkills }: Tenant,
  now: number,
): ForecastSubject => ({
  learner,
  views: viewSkills(skills, model, now),
  catalogue: model.catalogue,
  // Noted apart from the learner: of a new one's skills some may not be counted yet.
  knownSkills: Math.max(knownSkills, skills.size),
  now,
});

/** JSON of the prediction result. */
export function toldResult(
  { subject, forecast }: Prediction,
  model: TenantModel,
  options: ForecastOptions,
): string {
  const goal = { ...forecast.goal, neededRate: forecast.neededRate };
  const advice = studyAdvice({ ...subject, model, goal, locale: options.locale });
  return JSON.stringify(predictionResult(forecast, advice, options));
}

/** The forecast as it is noted, to be scored when its days are over. */
export function servedRow(
  tenant: string,
  userId: string,
  { subject, forecast }: Prediction,
  { accuracy: accuracyModel, version }: TenantModel,
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
    tenantModelVersion: version,
    accuracy: { expected: accuracy.expected, sd: accuracy.sd, ...reachesOf(accuracyModel) },
  });
}

/** How far the intervals reach that are scored. */
function reachesOf(model: AccuracyModel): Pick<ServedForecast['accuracy'], 'below' | 'above'> {
  const [at50, at80, at95] = [
    intervalReach(model, 0.5),
    intervalReach(model, 0.8),
    intervalReach(model, 0.95),
  ];
  return {
    below: { at50: at50.below, at80: at80.below, at95: at95.below },
    above: { at50: at50.above, at80: at80.above, at95: at95.above },
  };
}

/** Those that neither the learner answered, nor anybody of the tenant, nor the tenant set. */
async function unknownAmong(
  client: RedisClient,
  model: TenantModel,
  { skills }: WholeLearner,
  { tenant, skillIds }: WhatIfTask,
): Promise<string[]> {
  const open = (skillIds ?? []).filter((skillId) => !skills.has(skillId) && !model.skills.has(skillId));
  if (open.length === 0) return [];
  const known = await areKnownSkills(client, tenant, open);
  return open.filter((_, i) => !known[i]);
}

/**
 * JSON of the forecast under the plan. The target is to be reached within the days that were asked for; without any,
 * by the goal's date where it has one.
 */
function tellPlan(found: WholeLearner, tenant: Tenant, now: number, task: WhatIfTask): string {
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
