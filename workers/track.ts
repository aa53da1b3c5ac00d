/** Piscina entry: counts batches of answers. */
import { workerData } from 'node:worker_threads';
import type { TrackReply, TrackTask, WorkerSettings } from '../src/contracts/tasks.js';
import { serveModels } from '../src/store/catalogue/catalogue-cache.js';
import { type HotConnections, openHotConnections } from '../src/store/redis/hot-connection.js';
import { isMemoryFull } from '../src/store/redis/server-info.js';
import { createLogger } from '../src/telemetry.js';
import { createItemTable } from './track/item-table.js';
import { createKnownSkills } from './track/known-skills.js';
import { workerRedis } from './track/thread.js';
import { trackBatch } from './track/tracking.js';

const settings = workerData as WorkerSettings;
const redis = workerRedis(settings);
/** Of each task at a time. */
const free = [openHot(), openHot()];
const isAlone = (): boolean => free.length > 0;
const knownSkills = createKnownSkills();
const logger = createLogger('info', 'track worker');
const models = serveModels(redis, logger);
const items = createItemTable(redis);

const flushMs = 1000;
setInterval(() => {
  // Item difficulty bears the loss of some answers; who needs Redis for more says that it is unavailable.
  items.flush().catch((error: unknown) => logger.debug({ err: error }, 'item counters are lost'));
}, flushMs).unref();

const lookMs = 100;
/** As of the last look that Redis answered. */
let isFull = false;
let isLooking = false;
setInterval(async () => {
  if (isLooking) return;
  isLooking = true;
  isFull = await redis()
    .then(isMemoryFull)
    .catch((error: unknown) => {
      logger.debug({ err: error }, 'Redis does not report its memory');
      return isFull;
    });
  isLooking = false;
}, lookMs).unref();

function openHot(): HotConnections {
  const { redisUrl, waitReplicas } = settings;
  return openHotConnections(redisUrl, waitReplicas, redis);
}

/** Where Redis is nearly full, only events that were counted before get their result. */
const outboxBound = (): number => (isFull ? 0 : settings.outboxBound);

export default async (task: TrackTask): Promise<TrackReply> => {
  const hot = free.pop();
  if (hot === undefined) throw new Error('more tasks at once than a thread of this kind takes');
  try {
    return await trackBatch({ redis, hot, isAlone, settings, knownSkills, models, items, outboxBound }, task);
  } finally {
    free.push(hot);
  }
};
