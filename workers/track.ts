/** Piscina entry: counts batches of answers. */
import { workerData } from 'piscina';
import type { TrackReply, TrackTask, WorkerSettings } from '../src/contracts/tasks.js';
import { ApiError } from '../src/errors.js';
import { createKnownSkills } from './known-skills.js';
import { workerRedis } from './redis.js';
import { trackBatch } from './tracking.js';

const settings = workerData as WorkerSettings;
const redis = workerRedis(settings);
const knownSkills = createKnownSkills();

/** An error's class does not survive the thread boundary, so one that callers are told of becomes plain values. */
export default async function track(task: TrackTask): Promise<TrackReply | { unavailable: string }> {
  try {
    return await trackBatch({ client: await redis(), settings, knownSkills }, task);
  } catch (error) {
    if (error instanceof ApiError) return { unavailable: error.message };
    throw error;
  }
}
