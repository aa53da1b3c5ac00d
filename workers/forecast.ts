/** Piscina entry: computes forecasts from the learner's states. */
import { workerData } from 'piscina';
import { predictionResult } from '../src/contracts/prediction.js';
import type { ForecastReply, ForecastTask, WorkerSettings } from '../src/contracts/tasks.js';
import { forecastLearner } from '../src/domain/forecast.js';
import { ApiError } from '../src/errors.js';
import { partitionOf } from '../src/store/keys.js';
import { countKnownSkills, readLearner } from '../src/store/learner-store.js';
import { workerRedis } from './redis.js';

const settings = workerData as WorkerSettings;
const redis = workerRedis(settings);

export default async function forecast(task: ForecastTask): Promise<ForecastReply> {
  try {
    const client = await redis();
    const { tenant, userId } = task;
    const partition = partitionOf(tenant, userId, settings.partitions);
    const [found, knownSkills] = await Promise.all([
      readLearner(client, { partition, tenant, userId }),
      countKnownSkills(client, tenant),
    ]);
    if (found === null) return { data: null };
    const result = forecastLearner(found.learner, [...found.skills.values()], knownSkills, task);
    return { data: JSON.stringify(predictionResult(result, task)) };
  } catch (error) {
    if (error instanceof ApiError) return { unavailable: error.message };
    throw error;
  }
}
