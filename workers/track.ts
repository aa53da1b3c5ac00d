/** Piscina entry: counts batches of answers. */
import { workerData } from 'node:worker_threads';
import type { TrackReply, TrackTask } from '../src/contracts/answers/track-task.js';
import type { WorkerSettings } from '../src/contracts/settings/worker-settings.js';
import { createLogger } from '../src/logger.js';
import { createServedModels } from '../src/store/catalogue/served-models.js';
import { openHotConnections } from '../src/store/redis/connection/hot-connection.js';
import { isMemoryFull } from '../src/store/redis/server/server-info.js';
import { createItemCache } from './track/item-cache.js';
import { createSubscriptionReader } from './track/notifications.js';
import { SkillRegistry } from './track/skill-registry.js';
import { trackBatch } from './track/track-batch.js';
import { connectWorkerRedis } from './track/worker-redis.js';

const settings: WorkerSettings = workerData;
const redis = connectWorkerRedis(settings);
const logger = createLogger('info', 'track worker');
const items = createItemCache(redis, settings.itemCacheMs);
/** A lane has at most two tasks in flight (src/compute/lanes.ts). */
const freeConnections = [0, 1].map(() => openHotConnections(settings.redisUrl, settings.waitReplicas, redis));

const flushMs = 1000;
setInterval(() => {
  // Item statistics tolerate lost answers.
  items
    .flush()
    .catch((error: unknown) =>
      logger.debug({ err: error }, 'cannot write item counters; the counts are lost'),
    );
}, flushMs).unref();

const memoryCheckMs = 100;
let isRedisFull = false;
let isChecking = false;
setInterval(async () => {
  if (isChecking) return;
  isChecking = true;
  try {
    isRedisFull = await isMemoryFull(await redis());
  } catch (error) {
    logger.debug({ err: error }, 'Redis does not report its memory');
  }
  isChecking = false;
}, memoryCheckMs).unref();

const dependencies = {
  ...{ redis, settings, items, isOnlyTask: () => freeConnections.length > 0 },
  skillRegistry: new SkillRegistry(settings.skillLimits),
  models: createServedModels(redis, logger),
  fetchSubscriptions: createSubscriptionReader(redis),
  // If Redis is nearly full, no rows are accepted: only learners whose events are all repeats get results.
  maxOutboxRows: () => (isRedisFull ? 0 : settings.maxOutboxRows),
};

export default async (task: TrackTask): Promise<TrackReply> => {
  const hotConnections = freeConnections.pop();
  if (hotConnections === undefined) throw new Error('too many concurrent tasks for this thread');
  try {
    return await trackBatch({ ...dependencies, hotConnections }, task);
  } finally {
    freeConnections.push(hotConnections);
  }
};
