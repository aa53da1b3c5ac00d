/** Piscina entry: computes forecasts from the learner's states. */
import { workerData } from 'piscina';
import { predictionResult } from '../src/contracts/prediction.js';
import type { ForecastReply, ForecastTask, WorkerSettings } from '../src/contracts/tasks.js';
import { forecastLearner } from '../src/domain/forecast.js';
import { effectiveMastery } from '../src/domain/forgetting.js';
import { skillModelOf, type TenantModel } from '../src/domain/tenant-model.js';
import type { SkillState } from '../src/domain/types.js';
import { ApiError } from '../src/errors.js';
import { partitionOf } from '../src/store/keys.js';
import { countKnownSkills, readLearner } from '../src/store/learner-store.js';
import { createWorkerModels } from './models.js';
import { workerRedis } from './redis.js';

const settings = workerData as WorkerSettings;
const redis = workerRedis(settings);
const models = createWorkerModels(redis, 'forecast worker');

export default async function forecast(task: ForecastTask): Promise<ForecastReply> {
  try {
    const client = await redis();
    const { tenant, userId } = task;
    const partition = partitionOf(tenant, userId, settings.partitions);
    const [found, knownSkills, model] = await Promise.all([
      readLearner(client, { partition, tenant, userId }),
      countKnownSkills(client, tenant),
      models.get(tenant),
    ]);
    if (found === null) return { data: null };
    const skills = forgotten(found.skills, model, Date.now());
    const result = forecastLearner(found.learner, skills, knownSkills, task);
    return { data: JSON.stringify(predictionResult(result, task)) };
  } catch (error) {
    if (error instanceof ApiError) return { unavailable: error.message };
    throw error;
  }
}

/** The skills with the mastery that is left of them now. */
const forgotten = (skills: ReadonlyMap<string, SkillState>, model: TenantModel, now: number): SkillState[] =>
  [...skills].map(([skillId, skill]) => {
    const { pInit } = skillModelOf(model, skillId).parameters;
    return { ...skill, mastery: effectiveMastery(pInit, skill, now) };
  });
