import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import type { PeerSettings } from '../targets/peers.js';
import { createLastWriteStore, startFastify } from './fastify-app.js';

const settings: PeerSettings = JSON.parse(process.argv[2] as string);
const connection = new Redis(settings.redisUrl, { maxRetriesPerRequest: null });
const queue = new Queue('answers', { connection });
const options = { removeOnComplete: true, attempts: 5 };
const storeAnswer = createLastWriteStore(settings.redisUrl);
await startFastify(settings, async (event) => {
  const traced = await storeAnswer(event);
  await queue.add('answer', { event, ...traced }, options);
  return traced;
});
