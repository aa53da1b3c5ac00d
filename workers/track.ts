/** Piscina entry: counts batches of answers. */
import { workerData } from 'node:worker_threads';
import type { TrackReply, TrackTask, WorkerSettings } from '../src/contracts/tasks.js';
import { createMemoryWatch } from '../src/store/memory-watch.js';
import { createLogger } from '../src/telemetry.js';
import { createItemTable } from './item-table.js';
import { createKnownSkills } from './known-skills.js';
import { createWorkerModels } from './models.js';
import { workerRedis } from './redis.js';
import { trackBatch } from './tracking.js';

const settings = workerData as WorkerSettings;
/** One for each task at a time: what a task watches, another transaction on its connection would let go. */
const free = [workerRedis(settings), workerRedis(settings)];
const otherRedis = workerRedis(settings);
const knownSkills = createKnownSkills();
const logger = createLogger('info', 'track worker');
const models = createWorkerModels(otherRedis, 'track worker');
const items = createItemTable(otherRedis, Date.now);

const flushMs = 1000;
setInterval(() => {
  // Item difficulty bears the loss of some answers; who needs Redis for more says that it is away.
  items.flush().catch((error: unknown) => logger.debug({ err: error }, 'item counters are lost'));
}, flushMs).unref();

const memory = createMemoryWatch(otherRedis);
const lookMs = 100;
let looking = false;
setInterval(async () => {
  if (looking) return;
  looking = true;
  await memory
    .look()
    .catch((error: unknown) => logger.debug({ err: error }, 'Redis does not tell its memory'));
  looking = false;
}, lookMs).unref();

/** Where Redis is nearly full, only what was counted before is told again. */
const outboxBound = (): number => (memory.isFull() ? 0 : settings.outboxBound);

export default async (task: TrackTask): Promise<TrackReply> => {
  const redis = free.pop();
  if (redis === undefined) throw new Error('more tasks at once than a thread of this kind takes');
  try {
    return await trackBatch({ redis, settings, knownSkills, models, items, outboxBound }, task);
  } finally {
    free.push(redis);
  }
};
