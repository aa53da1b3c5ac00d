/** Piscina entry: replays learners and writes what comes out. */
import { workerData } from 'piscina';
import type { RebuildReply, RestoreReply, RestoreTask } from '../src/contracts/rebuild-tasks.js';
import { ApiError } from '../src/errors.js';
import { partitionOf } from '../src/store/keys.js';
import { type RestoredLearner, restoreLearners } from '../src/store/learner-restore.js';
import { workerRedis } from './redis.js';
import { replayRows } from './replayed.js';

const redis = workerRedis(workerData as { redisUrl: string; waitReplicas: number });

/** Names that are told. */
const maxNames = 10;

/** An error's class does not survive the thread boundary, so one that users are told of becomes plain values. */
export default async function rebuild(task: RestoreTask): Promise<RebuildReply<RestoreReply>> {
  try {
    return await restore(task);
  } catch (error) {
    if (error instanceof ApiError) return { unavailable: error.message };
    throw error;
  }
}

async function restore({ rows, partitions, idsFrom, buckets }: RestoreTask): Promise<RestoreReply> {
  const learners: RestoredLearner[] = [];
  const broken: string[] = [];
  let [answers, brokenCount] = [0, 0];
  for (const learner of replayRows(rows, idsFrom)) {
    const { tenant, userId } = learner;
    learners.push({ ...learner, partition: partitionOf(tenant, userId, partitions) });
    answers += learner.answers;
    if (learner.broken === 0) continue;
    brokenCount += 1;
    if (broken.length < maxNames) broken.push(`${tenant}:${userId}`);
  }
  await restoreLearners(await redis(), learners, buckets);
  return { learners: learners.length, answers, broken, brokenCount };
}
