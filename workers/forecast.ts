/** Piscina entry: computes forecasts from the learners' states. */
import { workerData } from 'node:worker_threads';
import type {
  ForecastReply,
  ForecastTask,
  WhatIfReply,
  WhatIfTask,
  WorkerSettings,
} from '../src/contracts/tasks.js';
import { createLogger } from '../src/telemetry.js';
import { createForecasts } from './forecast/forecasting.js';
import { createWorkerModels } from './track/models.js';
import { tellRefusal, workerRedis } from './track/redis.js';

const settings = workerData as WorkerSettings;
const redis = workerRedis(settings);
const logger = createLogger('info', 'forecast worker');
const toldEveryMs = 60_000;
let toldAt = 0;

/** Now and then: there may be hundreds a second. */
function tellLost(count: number, error: unknown): void {
  if (Date.now() - toldAt < toldEveryMs) return;
  toldAt = Date.now();
  logger.warn({ count, err: error }, 'served forecasts were not noted: they will not be scored');
}

const forecasts = createForecasts({
  redis,
  models: createWorkerModels(redis, 'forecast worker'),
  settings,
  now: Date.now,
  onLost: tellLost,
});

export default (task: ForecastTask | WhatIfTask): Promise<ForecastReply | WhatIfReply> =>
  task.kind === 'what-if' ? tellRefusal(forecasts.whatIf(task)) : tellRefusal(forecasts.predict(task));
