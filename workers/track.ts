/** Piscina entry: counts batches of answers. */
import { workerData } from 'node:worker_threads';
import type { TrackReply, TrackTask, WorkerSettings } from '../src/contracts/worker-tasks.js';
import { createLogger } from '../src/logger.js';
import { createServedModels } from '../src/store/catalogue/served-models.js';
import { openHotConnections } from '../src/store/redis/hot-connection.js';
import { isMemoryFull } from '../src/store/redis/server-info.js';
import { createItemTable } from './track/item-table.js';
import { KnownSkills } from './track/known-skills.js';
import { askWanted } from './track/notices.js';
import { workerRedis } from './track/thread.js';
import { trackBatch } from './track/tracking.js';

const settings: WorkerSettings = workerData;
const redis = workerRedis(settings);
const logger = createLogger('info', 'track worker');
const items = createItemTable(redis, settings.itemCacheMs);
/** A lane has at most two tasks in flight (compute/lanes.ts). */
const free = [0, 1].map(() => openHotConnections(settings.redisUrl, settings.waitReplicas, redis));

const flushMs = 1000;
setInterval(() => {
  // Item statistics tolerate lost answers.
  items.flush().catch((error: unknown) => logger.debug({ err: error }, 'item counters are lost'));
}, flushMs).unref();

const lookMs = 100;
let isFull = false;
let isLooking = false;
setInterval(async () => {
  if (isLooking) return;
  isLooking = true;
  try {
    isFull = await isMemoryFull(await redis());
  } catch (error) {
    logger.debug({ err: error }, 'Redis does not report its memory');
  }
  isLooking = false;
}, lookMs).unref();

const tools = {
  ...{ redis, settings, items, isAlone: () => free.length > 0 },
  knownSkills: new KnownSkills(settings.skillLimits),
  models: createServedModels(redis, logger),
  askWanted: askWanted(redis),
  // If Redis is nearly full, only repeated events get a result.
  outboxBound: () => (isFull ? 0 : settings.maxOutboxRows),
};

export default async (task: TrackTask): Promise<TrackReply> => {
  const hot = free.pop();
  if (hot === undefined) throw new Error('more tasks at once than a thread of this kind takes');
  try {
    return await trackBatch({ ...tools, hot }, task);
  } finally {
    free.push(hot);
  }
};
