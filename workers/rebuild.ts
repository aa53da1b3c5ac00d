/** Piscina entry: replays learners, and writes what comes out or compares it with what is stored. */
import { workerData } from 'node:worker_threads';
import { learnerName } from '../src/contracts/learner-name.js';
import type {
  CompareReply,
  CompareTask,
  RebuildReply,
  RestoreReply,
  RestoreTask,
} from '../src/contracts/rebuild-tasks.js';
import { differenceOf, readDumps, restoreLearners } from '../src/store/rebuild/replayed-learners.js';
import { partitionOf } from '../src/store/redis/keys.js';
import { learnersOf, type ReplayedLearner, replayLearner, withWaiting } from './rebuild/replayed.js';
import { refusalAsValue, workerRedis } from './track/thread.js';

const redis = workerRedis(workerData as { redisUrl: string; waitReplicas: number });

const maxNames = 10;

export default (task: RestoreTask | CompareTask): Promise<RebuildReply<RestoreReply | CompareReply>> =>
  refusalAsValue<RestoreReply | CompareReply>(task.kind === 'restore' ? restore(task) : compare(task));

const nameOf = ({ tenant, userId }: Pick<ReplayedLearner, 'tenant' | 'userId'>): string =>
  learnerName(tenant, userId);

const answersOf = (learners: readonly ReplayedLearner[]): number =>
  learners.reduce((sum, { answers }) => sum + answers, 0);

const placed = (learners: readonly ReplayedLearner[], partitions: number) =>
  learners.map((learner) => ({
    ...learner,
    partition: partitionOf(learner.tenant, learner.userId, partitions),
  }));

async function restore({ rows, partitions, idsFrom }: RestoreTask): Promise<RestoreReply> {
  const learners = Array.from(learnersOf(rows), (learner) => replayLearner(learner, idsFrom));
  await restoreLearners(await redis(), placed(learners, partitions));
  const broken = learners.filter((learner) => learner.broken > 0);
  return {
    learners: learners.length,
    answers: answersOf(learners),
    broken: broken.slice(0, maxNames).map(nameOf),
    brokenCount: broken.length,
  };
}

/** What is stored is read after the rows: it may only be ahead of them. */
async function compare({ rows, partitions, waiting, known }: CompareTask): Promise<CompareReply> {
  const learners = Array.from(withWaiting(learnersOf(rows), waiting), (learner) =>
    replayLearner(learner, Number.POSITIVE_INFINITY),
  );
  const dumps = await readDumps(await redis(), placed(learners, partitions));
  const found = learners.map((learner, i) => ({
    learner,
    what: differenceOf(learner.states, dumps[i] ?? null),
  }));
  const replayed = new Set(learners.map(nameOf));
  const alone = known.filter((learner) => !replayed.has(nameOf(learner)));
  return {
    learners: learners.length,
    answers: answersOf(learners),
    differing: [
      ...found.flatMap(({ learner, what }) =>
        what === null || what === 'behind' ? [] : [{ learner: nameOf(learner), what }],
      ),
      ...alone.map((learner) => ({ learner: nameOf(learner), what: 'is in Redis alone' })),
    ],
    behind: found
      .filter(({ what }) => what === 'behind')
      .map(({ learner: { tenant, userId } }) => ({ tenant, userId })),
  };
}
