/** Piscina entry: counts batches of answers. */
import { workerData } from 'node:worker_threads';
import type { TrackReply, TrackTask, WorkerSettings } from '../src/contracts/tasks.js';
import { type HotConnections, openHotConnections } from '../src/store/redis/hot-connection.js';
import { createMemoryWatch } from '../src/store/redis/memory-watch.js';
import { createLogger } from '../src/telemetry.js';
import { createItemTable } from './track/item-table.js';
import { createKnownSkills } from './track/known-skills.js';
import { createWorkerModels, workerRedis } from './track/thread.js';
import { trackBatch } from './track/tracking.js';

const settings = workerData as WorkerSettings;
const redis = workerRedis(settings);
/** Of each task at a time. */
const free = [openHot(), openHot()];
const isAlone = (): boolean => free.length > 0;
const knownSkills = createKnownSkills();
const logger = createLogger('info', 'track worker');
const models = createWorkerModels(redis, 'track worker');
const items = createItemTable(redis, Date.now);

const flushMs = 1000;
setInterval(() => {
  // Item difficulty bears the loss of some answers; who needs Redis for more says that it is unavailable.
  items.flush().catch((error: unknown) => logger.debug({ err: error }, 'item counters are lost'));
}, flushMs).unref();

const memory = createMemoryWatch(redis);
const lookMs = 100;
let looking = false;
setInterval(async () => {
  if (looking) return;
  looking = true;
  await memory
    .look()
    .catch((error: unknown) => logger.debug({ err: error }, 'Redis does not report its memory'));
  looking = false;
}, lookMs).unref();

function openHot(): HotConnections {
  const { redisUrl, waitReplicas } = settings;
  return openHotConnections(redisUrl, waitReplicas, redis);
}

/** Where Redis is nearly full, only events that were counted before get their result. */
const outboxBound = (): number => (memory.isFull() ? 0 : settings.outboxBound);

export default async (task: TrackTask): Promise<TrackReply> => {
  const hot = free.pop();
  if (hot === undefined) throw new Error('more tasks at once than a thread of this kind takes');
  try {
    return await trackBatch({ redis, hot, isAlone, settings, knownSkills, models, items, outboxBound }, task);
  } finally {
    free.push(hot);
  }
};
