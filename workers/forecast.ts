/** Piscina entry: computes forecasts, what-if plans and next items. */
import { workerData } from 'node:worker_threads';
import type { ForecastTask, NextItemsTask, WhatIfTask } from '../src/contracts/forecasts/forecast-tasks.js';
import type { WorkerSettings } from '../src/contracts/settings/worker-settings.js';
import { createLogger } from '../src/logger.js';
import { createServedModels } from '../src/store/catalogue/served-models.js';
import { chooseNextItems } from './forecast/choose-items.js';
import { computeForecasts, computeWhatIf, type ForecastDependencies } from './forecast/compute-forecasts.js';
import { connectWorkerRedis, convertApiError } from './track/worker-redis.js';

const settings = workerData as WorkerSettings;
const redis = connectWorkerRedis(settings);
const logger = createLogger('info', 'forecast worker');
const logIntervalMs = 60_000;

/** At most one warning per interval. */
function createWarning(text: string): (fields: object) => void {
  let lastLoggedAt = 0;
  return (fields) => {
    if (Date.now() - lastLoggedAt < logIntervalMs) return;
    lastLoggedAt = Date.now();
    logger.warn(fields, text);
  };
}

const warnLostForecasts = createWarning('cannot record served forecasts; their accuracy is not measured');
const warnLostStatus = createWarning('cannot store the status of a goal; the next forecast stores it');

const dependencies: ForecastDependencies = {
  redis,
  models: createServedModels(redis, logger),
  settings,
  now: Date.now,
  onLost: (count, err) => warnLostForecasts({ count, err }),
  onStatusLost: (err) => warnLostStatus({ err }),
};

type Task = ForecastTask | WhatIfTask | NextItemsTask;

function runTask(task: Task): Promise<object> {
  if (task.kind === 'what-if') return computeWhatIf(dependencies, task);
  return task.kind === 'next-items'
    ? chooseNextItems(dependencies, task)
    : computeForecasts(dependencies, task);
}

export default (task: Task): Promise<object> => convertApiError(runTask(task));
