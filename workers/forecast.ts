/** Piscina entry: computes forecasts, what-if plans and next items. */
import { workerData } from 'node:worker_threads';
import type {
  ForecastTask,
  NextItemsTask,
  WhatIfTask,
  WorkerSettings,
} from '../src/contracts/worker-tasks.js';
import { createLogger } from '../src/logger.js';
import { createServedModels } from '../src/store/catalogue/served-models.js';
import { type ForecastParts, predictAll, predictPlan } from './forecast/forecasting.js';
import { chooseNext } from './forecast/next-items.js';
import { refusalAsValue, workerRedis } from './track/thread.js';

const settings = workerData as WorkerSettings;
const redis = workerRedis(settings);
const logger = createLogger('info', 'forecast worker');
const loggedEveryMs = 60_000;
let loggedAt = 0;

function logLost(count: number, error: unknown): void {
  if (Date.now() - loggedAt < loggedEveryMs) return;
  loggedAt = Date.now();
  logger.warn({ count, err: error }, 'served forecasts were not noted: they will not be scored');
}

const parts: ForecastParts = {
  redis,
  models: createServedModels(redis, logger),
  settings,
  now: Date.now,
  onLost: logLost,
};

type Task = ForecastTask | WhatIfTask | NextItemsTask;

function answer(task: Task): Promise<object> {
  if (task.kind === 'what-if') return predictPlan(parts, task);
  return task.kind === 'next-items' ? chooseNext(parts, task) : predictAll(parts, task);
}

export default (task: Task): Promise<object> => refusalAsValue(answer(task));
