/** Piscina entry: replays learners, and writes what comes out or compares it with what is stored. */
import { workerData } from 'node:worker_threads';
import type {
  CompareReply,
  CompareTask,
  RebuildReply,
  RestoreReply,
  RestoreTask,
} from '../src/contracts/rebuild-tasks.js';
import { ApiError } from '../src/errors.js';
import { partitionOf } from '../src/store/keys.js';
import { differenceOf, readDumps } from '../src/store/learner-compare.js';
import { type RestoredLearner, restoreLearners } from '../src/store/learner-restore.js';
import { workerRedis } from './redis.js';
import { replayRows } from './replayed.js';

const redis = workerRedis(workerData as { redisUrl: string; waitReplicas: number });

/** Names that are told. */
const maxNames = 10;

/** An error's class does not survive the thread boundary, so one that users are told of becomes plain values. */
export default async function rebuild(
  task: RestoreTask | CompareTask,
): Promise<RebuildReply<RestoreReply | CompareReply>> {
  try {
    return task.kind === 'restore' ? await restore(task) : await compare(task);
  } catch (error) {
    if (error instanceof ApiError) return { unavailable: error.message };
    throw error;
  }
}

async function restore(task: RestoreTask): Promise<RestoreReply> {
  const { rows, partitions, idsFrom, buckets } = task;
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

/** What is stored is read after the rows: it may only be ahead of them. */
async function compare({ rows, partitions }: CompareTask): Promise<CompareReply> {
  const learners = [...replayRows(rows, Number.POSITIVE_INFINITY)];
  const places = learners.map(({ tenant, userId }) => ({
    tenant,
    userId,
    partition: partitionOf(tenant, userId, partitions),
  }));
  const dumps = await readDumps(await redis(), places);
  const reply = { differing: [], lacking: [], learners: learners.length, answers: 0 } as {
    differing: CompareReply['differing'][number][];
    lacking: CompareReply['lacking'][number][];
    learners: number;
    answers: number;
  };
  for (const [i, { tenant, userId, states, answers }] of learners.entries()) {
    reply.answers += answers;
    const what = differenceOf(states, dumps[i] ?? null);
    if (what === 'behind') reply.lacking.push({ tenant, userId });
    else if (what !== null) reply.differing.push({ learner: `${tenant}:${userId}`, what });
  }
  return reply;
}
