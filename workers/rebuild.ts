/** Piscina entry: replays learners, then restores them or compares them with Redis. */
import { workerData } from 'node:worker_threads';
import { type AttemptRow, decodeAttemptRow } from '../src/contracts/attempt-row.js';
import { type LearnerId, learnerName } from '../src/contracts/learner-name.js';
import type { CompareReply, CompareTask, RestoreReply, RestoreTask } from '../src/contracts/rebuild-tasks.js';
import { computeSum, groupBy } from '../src/lists.js';
import {
  encodeFirstAnswer,
  fingerprintFrom,
  hashEventId,
  noIds,
  openIds,
} from '../src/store/learners/event-ids.js';
import { learnersOf, replayLearner, type StoredLearner } from '../src/store/learners/stored-learners.js';
import {
  describeDifference,
  readLearnerDumps,
  restoreLearners,
} from '../src/store/rebuild/replayed-learners.js';
import { partitionOf } from '../src/store/redis/keys.js';
import { figuresOf } from './track/results.js';
import { refusalAsValue, workerRedis } from './track/thread.js';

const redis = workerRedis(workerData as { redisUrl: string; waitReplicas: number });

const maxNames = 10;

export default (task: RestoreTask | CompareTask): Promise<object> =>
  refusalAsValue<object>(task.kind === 'restore' ? restore(task) : compare(task));

const nameOf = ({ tenant, userId }: LearnerId): string => learnerName(tenant, userId);

/** @param idsFrom Unix second of the oldest event id to restore */
function replayed(learner: StoredLearner, partitions: number, idsFrom = Number.POSITIVE_INFINITY) {
  const { tenant, userId, answers } = learner;
  const ids = openIds(noIds);
  const after = replayLearner(learner, ({ event, figures }, { effect, advice }) => {
    if (event.eventId === null || event.receivedAt < 1000 * idsFrom) return;
    const fingerprint = fingerprintFrom(figures.eventFingerprint);
    const answer = encodeFirstAnswer(figuresOf(effect, advice), fingerprint, event.receivedAt);
    ids.take(hashEventId(event.eventId), answer, Math.floor(event.receivedAt / 1000));
  });
  const partition = partitionOf(tenant, userId, partitions);
  return { ...after, tenant, userId, partition, answers, ids: ids.changes() };
}

async function restore({ rows, partitions, idsSince }: RestoreTask): Promise<RestoreReply> {
  const learners = Array.from(learnersOf(rows), (learner) => replayed(learner, partitions, idsSince));
  await restoreLearners(await redis(), learners);
  const broken = learners.filter((learner) => learner.broken > 0);
  return {
    ...countsOf(learners),
    brokenLearners: broken.slice(0, maxNames).map(nameOf),
    brokenCount: broken.length,
  };
}

const countsOf = (learners: readonly { readonly answers: number }[]) => ({
  learners: learners.length,
  answers: computeSum(learners.map(({ answers }) => answers)),
});

/** Reads Redis after the rows, so that Redis can only be ahead. */
async function compare({ rows, partitions, outboxRows, redisLearners }: CompareTask): Promise<CompareReply> {
  const learners = Array.from(withWaiting(learnersOf(rows), outboxRows), (one) => replayed(one, partitions));
  const dumps = await readLearnerDumps(await redis(), learners);
  const names = new Set(learners.map(nameOf));
  const alone = redisLearners.filter((learner) => !names.has(nameOf(learner)));
  const differences = alone.map((learner) => ({ learner: nameOf(learner), what: 'is in Redis alone' }));
  const learnersMissingRows: LearnerId[] = [];
  for (const [i, { tenant, userId, states }] of learners.entries()) {
    const what = describeDifference(states, dumps[i] ?? null);
    if (what === 'behind') learnersMissingRows.push({ tenant, userId });
    else if (what !== null) differences.push({ learner: learnerName(tenant, userId), what });
  }
  return { ...countsOf(learners), differences, learnersMissingRows };
}

/** Pending rows may repeat stored rows. */
function* withWaiting(
  learners: Iterable<StoredLearner>,
  waiting: readonly string[],
): Generator<StoredLearner> {
  const rowsOf = groupBy(waiting.map(decodeAttemptRow), ({ event }) => nameOf(event));
  const inOrder = (rows: AttemptRow[]): AttemptRow[] =>
    rows.sort((a, b) => a.figures.learnerSeq - b.figures.learnerSeq);
  for (const learner of learners) {
    const rows = rowsOf.get(nameOf(learner)) ?? [];
    rowsOf.delete(nameOf(learner));
    yield rows.length === 0 ? learner : { ...learner, rows: inOrder([...learner.rows, ...rows]) };
  }
  for (const rows of rowsOf.values()) {
    const { tenant, userId } = (rows[0] as AttemptRow).event;
    yield { tenant, userId, from: null, rows: inOrder(rows), answers: rows.length };
  }
}
